package requests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/observe/telemetry"
	"github.com/kubecdc/kubecdc/internal/pipeline"
	"github.com/kubecdc/kubecdc/internal/sink/signal"
)

// signalRig is a handler at a topic of signals, and what it has told.
type signalRig struct {
	t       *testing.T
	handler *signalHandler
	places  int
	asked   []string // since told was called last
}

func (r *signalRig) Hears(string, error) {}
func (r *signalRig) Asked(_, what string, err error) {
	if err != nil {
		what += ": " + err.Error()
	}
	r.asked = append(r.asked, what)
}

func newSignalRig(t *testing.T) *signalRig {
	t.Helper()
	d := newTestHandler(t)
	r := &signalRig{t: t}
	d.Told, d.Cluster.Name = r, "prod"
	d.Steer, d.Progress = d.obey, telemetry.New(telemetry.Options{Logger: slog.New(slog.DiscardHandler)}).Progress
	r.handler = newSignalHandler(d, true)
	return r
}

// obey does what the pipeline does with an order.
func (h *brokerHandler) obey(_ context.Context, do checkpoint.Steering, ids []string, heard map[string][]byte) error {
	owed, err := h.Store.PendingSnapshots()
	if err != nil {
		return err
	}
	owed = slices.DeleteFunc(owed, func(p checkpoint.PendingSnapshot) bool { return !slices.Contains(ids, p.ID()) })
	return h.Store.Commit(checkpoint.Batch{Steered: owed, Steering: do, Heard: heard})
}

// follow gives the handler a message, and returns what was told of it.
func (r *signalRig) follow(key, value string) string {
	r.t.Helper()
	r.places++
	place := fmt.Sprint("signals-0-", r.places)
	return r.message(&signal.Message{Key: []byte(key), Value: []byte(value), Place: place, Offset: int64(r.places), After: func() string { return place }})
}

func (r *signalRig) message(m *signal.Message) string {
	r.t.Helper()
	r.asked, r.handler.followed = nil, 0
	must(r.t, r.handler.Follow(r.t.Context(), m))
	return strings.Join(r.asked, ", ")
}

// told are the notifications that are due, as "id type".
func (r *signalRig) told() string {
	r.t.Helper()
	var all []string
	if err := r.handler.Tell(r.t.Context(), func(values [][]byte) error {
		for _, v := range values {
			var n struct{ ID, Type string }
			if err := json.Unmarshal(v, &n); err != nil {
				r.t.Error(err)
			}
			all = append(all, n.ID+" "+n.Type)
		}
		return nil
	}); err != nil {
		r.t.Fatal(err)
	}
	return strings.Join(all, ", ")
}

// owed are the snapshots that are owed.
func (r *signalRig) owed() string {
	r.t.Helper()
	owed, err := r.handler.Store.PendingSnapshots()
	must(r.t, err)
	var all []string
	for _, o := range owed {
		all = append(all, strings.TrimSpace(o.Stream+" "+o.Limits.String())+map[bool]string{true: " paused"}[o.Paused])
	}
	return strings.Join(all, ", ")
}

// deliver gives the sink what it is owed.
func (r *signalRig) deliver() {
	r.t.Helper()
	owed, err := r.handler.Store.PendingSnapshots()
	must(r.t, err)
	for _, one := range owed {
		must(r.t, r.handler.Store.Pay(one))
	}
}

const everything = `"data":{"data-collections":[".*"],"type":"INCREMENTAL","additional-conditions":[{"data-collection":"pods","filter":"namespace='blog' AND selector='app=web'"}]}`

// TestI5SignalsAreFollowedOnce, with their conditions and over restarts, and what becomes of them is told.
func TestI5SignalsAreFollowedOnce(t *testing.T) {
	r := newSignalRig(t)
	if got := r.follow("prod", `{"id":"one","type":"execute-snapshot",`+everything+`}`); got != "execute-snapshot" {
		t.Errorf("followed: %s", got)
	}
	const owed = "shop/deployments.apps, pods namespace blog, labels app=web"
	if got := r.owed(); got != owed && got != "pods namespace blog, labels app=web, shop/deployments.apps" {
		t.Errorf("owed are %s", got)
	}
	if got := r.told(); got != "one STARTED" {
		t.Errorf("told: %s", got)
	}
	again, err := newBrokerHandler(r.handler.Handler, "all") // the next life
	must(t, err)
	r.handler = newSignalHandler(again, true)
	r.deliver()
	if got := r.told(); got != "one TABLE_SCAN_COMPLETED, one TABLE_SCAN_COMPLETED, one COMPLETED" {
		t.Errorf("told: %s", got)
	}
	if got := r.follow("prod", `{"id":"one","type":"execute-snapshot",`+everything+`}`); !strings.Contains(got, `id "one" was followed before`) || r.owed() != "" {
		t.Errorf("followed again: %s; owed are %s", got, r.owed())
	}
	if got := r.told(); got != "one SKIPPED" || len(r.handler.book.Tasks) > 0 {
		t.Errorf("told: %s; tasks are left: %+v", got, r.handler.book.Tasks)
	}
	r.follow("prod", `{"type":"execute-snapshot","data":{"data-collections":["pods"]}}`)
	last := &signal.Message{Key: []byte("prod"), Value: []byte(`{"type":"stop-snapshot"}`), After: func() string { return r.handler.book.Place }}
	if got := r.message(last); got != "" || r.owed() != "pods" {
		t.Errorf("what is before the saved place is followed: %s", got)
	}
}

func TestSignalsSteerTheSinksOwnSnapshots(t *testing.T) {
	r := newSignalRig(t)
	if err := r.handler.Store.Commit(checkpoint.Batch{PendingSnapshots: []checkpoint.PendingSnapshot{
		{Stream: "pods", Owed: change.Owed{Sink: "some", Reason: change.Requested}},
		{Stream: "pods", Owed: change.Owed{Sink: "all", Reason: change.Lost}},
	}}); err != nil {
		t.Fatal(err)
	}
	const others = "pods, pods" // of reason lost, and of the other sink
	for _, step := range []struct{ signal, asked, owed, told string }{
		{`"pause-snapshot"`, "pause-snapshot: no snapshot that was asked for can be paused: none is owed that is not", others, "SKIPPED"},
		{`"execute-snapshot","id":"a","data":{"data-collections":["po","deployment"]}`, "execute-snapshot", others + ", pods, shop/deployments.apps", "a STARTED"},
		{`"pause-snapshot"`, "pause-snapshot", others + ", pods paused, shop/deployments.apps paused", "a PAUSED"},
		{`"resume-snapshot","data":{"data-collections":["pods"]}`, "resume-snapshot", others + ", pods, shop/deployments.apps paused", "a RESUMED"},
		{`"stop-snapshot","data":{"data-collections":["pods"],"type":"incremental"}`, "stop-snapshot", others + ", shop/deployments.apps paused", "a PAUSED"},
		{`"stop-snapshot"`, "stop-snapshot", others, "a ABORTED"},
		{`"resume-snapshot","data":{"data-collections":["nodes"]}`, `resume-snapshot: no stream of "nodes"; there are: pods, shop/deployments.apps`, others, "SKIPPED"},
		{`"log","id":"b","data":{"message":"at offset {}"}`, "log: at offset 8", others, ""},
		{`"log","id":"b","data":{"message":"at offset {}"}`, `log: id "b" was followed before, and nothing is done twice: give another question an id of its own`, others, "b SKIPPED"},
	} {
		asked, told := r.follow("prod", `{"type":`+step.signal+`}`), r.told()
		parts := strings.Split(r.owed(), ", ")
		slices.Sort(parts)
		want := strings.Split(step.owed, ", ")
		slices.Sort(want)
		if asked != step.asked || !slices.Equal(parts, want) || !strings.HasSuffix(told, step.told) || (step.told == "") != (told == "") {
			t.Errorf("%s: %q, owed %q, told %q\nwant %q, owed %q, told %q", step.signal, asked, parts, told, step.asked, want, step.told)
		}
	}
}

// TestHostileSignalsBlindNobody: they are told in few words, and the next one is followed.
func TestHostileSignalsBlindNobody(t *testing.T) {
	r := newSignalRig(t)
	long := strings.Repeat("x", 5000)
	execute := func(data string) string { return `{"type":"execute-snapshot","data":` + data + `}` }
	for value, want := range map[string]string{
		"":                        "signal: read the signal: unexpected end of JSON input",
		"{":                       "signal: read the signal: unexpected end of JSON input",
		`{"type":"` + long + `"}`: `signal: type "xxxxxxxxxxxxxxxxxxxx": want one of`,
		execute(`{}`):             "signal: data-collections is missing",
		execute(`{"data-collections":["` + long[:1000] + `"]}`):                                    `execute-snapshot: no stream of "xxx`,
		execute(`{"data-collections":["schema1.table1"]}`):                                         `execute-snapshot: no stream of "schema1.table1"; there are: pods, shop/deployments.apps`,
		execute(`{"data-collections":["("]}`):                                                      `execute-snapshot: "(" is neither a resource nor a regular expression`,
		execute(`{"data-collections":["pods"],"additional-condition":"color='blue'"}`):             `execute-snapshot: filter "color='blue'": an API server cannot select by "color='blue'"`,
		execute(`{"data-collections":["pods"],"additional-condition":"namespace='` + long + `'"}`): "execute-snapshot: namespace \"xxx",
		execute(`{"data-collections":["pods"],"additional-condition":"selector='=,=('"}`):          "execute-snapshot: selector \"=,=(\"",
		execute(`{"data-collections":["deployments"],"additional-condition":"namespace='blog'"}`):  "execute-snapshot: shop/deployments.apps: nothing of it is streamed of namespace blog",
		`{"type":"log","id":"` + long + `"}`:                                                       "signal: an id of 5000 bytes: want 256 at most",
		`{"type":"log","data":{"message":"` + long + `"}}`:                                         "log: xxx",
	} {
		if got := r.follow("prod", value); !strings.HasPrefix(got, want) || len(got) > 700 {
			t.Errorf("%.60s: told %.700s\nwant %s", value, got, want)
		}
	}
	for key, want := range map[string]string{"other": "", "": "signal: it has no key: want the cluster's name, prod", long: ""} {
		if got := r.follow(key, execute(`{"data-collections":["pods"]}`)); got != want {
			t.Errorf("with key %.10q: %s", key, got)
		}
	}
	broken := &signal.Message{Broken: errTest, After: func() string { return "x" }}
	if got := r.message(broken); got != "signal: "+errTest.Error() {
		t.Errorf("told %s", got)
	}
	old := &signal.Message{Key: []byte("prod"), Value: []byte(execute(`{"data-collections":["pods"]}`)), Old: "too old", After: func() string { return "y" }}
	if got := r.message(old); got != "execute-snapshot: too old" || r.owed() != "" {
		t.Errorf("told %s; owed are %s", got, r.owed())
	}
	r.told()
	if got := r.follow("prod", execute(`{"data-collections":["pods"]}`)); got != "execute-snapshot" || r.owed() != "pods" {
		t.Errorf("the next one is %s, owed are %s", got, r.owed())
	}
}

// TestI6FewSignalsAreFollowedAtOnce, few refusals wait to be told, and few snapshots of signals are under way.
func TestI6FewSignalsAreFollowedAtOnce(t *testing.T) {
	r := newSignalRig(t)
	m := &signal.Message{Key: []byte("prod"), Value: []byte(`{"type":"stop-snapshot"}`), After: func() string { return "x" }}
	n := 0
	for ; n < 1000; n++ {
		if err := r.handler.Follow(t.Context(), m); errors.Is(err, signal.ErrEnough) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if n != signalsFollowed {
		t.Errorf("%d are followed at once", n)
	}
	r.handler.followed = 0
	for range 2 * mostRefusals {
		r.follow("prod", "{")
	}
	if got := strings.Count(r.told(), "SKIPPED"); got != mostRefusals {
		t.Errorf("%d refusals were told", got)
	}
	for i := range signal.MostTasks {
		if got := r.follow("prod", fmt.Sprintf(`{"type":"execute-snapshot","data":{"data-collections":["pods"],"additional-condition":"name='n%d'"}}`, i)); got != "execute-snapshot" {
			t.Fatal(got)
		}
	}
	if got := r.follow("prod", `{"type":"execute-snapshot","data":{"data-collections":["pods"]}}`); !strings.Contains(got, "too many snapshots of signals are under way") {
		t.Errorf("one more is %s", got)
	}
}

// TestWhatCannotBeToldIsToldLater.
func TestWhatCannotBeToldIsToldLater(t *testing.T) {
	r := newSignalRig(t)
	r.follow("prod", `{"id":"a","type":"execute-snapshot","data":{"data-collections":["pods"]}}`)
	r.follow("prod", "{")
	if err := r.handler.Tell(t.Context(), func([][]byte) error { return errTest }); !errors.Is(err, errTest) {
		t.Errorf("a failure is %v", err)
	}
	if got := r.told(); got != "signals-0-2 SKIPPED, a STARTED" {
		t.Errorf("told later: %s", got)
	}
	if got := r.told(); got != "" {
		t.Errorf("told again: %s", got)
	}
}

// TestASignalWaitsForAPipelineThatTakesNothingYet.
func TestASignalWaitsForAPipelineThatTakesNothingYet(t *testing.T) {
	r := newSignalRig(t)
	r.handler.Request = make(pipeline.Desk).Request
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m := &signal.Message{Key: []byte("prod"), Value: []byte(`{"type":"execute-snapshot","data":{"data-collections":["pods"]}}`), After: func() string { return "x" }}
	if err := r.handler.Follow(ctx, m); err == nil || len(r.asked) > 0 || r.handler.book.Place != "" {
		t.Errorf("it is taken: %v, %q", err, r.asked)
	}
}
