package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"
	"go.uber.org/goleak"

	"github.com/kubecdc/kubecdc/internal/sink/nats/conn"
	"github.com/kubecdc/kubecdc/test/natsserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const limit = time.Minute // for what does not end by itself if it fails

// optionsOf answers with what was asked, and refuses "no".
func optionsOf(url string) Options {
	return Options{
		Connection: &conn.Options{URL: url, Servers: url, Name: "test", Replies: 1, Timing: conn.Timing{
			Reply: 10 * time.Second, Outage: time.Second, Dial: 10 * time.Second, Flush: 10 * time.Second, Ping: 10 * time.Second,
		}},
		Subject: "kubecdc.test", Inboxes: []string{"_INBOX.", "answers.here."}, Version: "v1.2.3", Metadata: map[string]string{"cluster": "test"},
		Refused: func(string, error) {},
		Endpoints: map[string]func(context.Context, []byte) ([]byte, error){"echo": func(_ context.Context, question []byte) ([]byte, error) {
			switch string(question) {
			case "no":
				return nil, errors.New("no:\r\nthis is\n" + strings.Repeat("long", 1000))
			case "huge":
				return make([]byte, 2<<20), nil
			case "broken":
				return nil, errors.New("broken")
			}
			return question, nil
		}},
		Code: func(err error) int {
			if strings.HasPrefix(err.Error(), "no") {
				return 400
			}
			return 500
		},
	}
}

// running is a service that runs until the test is over.
type running struct {
	t        *testing.T
	serving  chan struct{}
	failures chan error
}

func run(t *testing.T, options Options) *running {
	t.Helper()
	r := &running{t: t, serving: make(chan struct{}, 100), failures: make(chan error, 100)}
	options.Serving, options.Failed = func() { r.serving <- struct{}{} }, func(err error) { r.failures <- err }
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); New(options).Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return r
}

func (r *running) await() {
	r.t.Helper()
	select {
	case <-r.serving:
	case <-time.After(limit):
		r.t.Fatalf("it does not serve; %d failures", len(r.failures))
	}
}

func connect(t *testing.T, url string) *natsgo.Conn {
	t.Helper()
	nc, err := natsgo.Connect(url, natsgo.Timeout(limit), natsgo.MaxReconnects(-1), natsgo.ReconnectWait(10*time.Millisecond))
	must(t, err)
	t.Cleanup(nc.Close)
	return nc
}

func ask(t *testing.T, nc *natsgo.Conn, question string) *natsgo.Msg {
	t.Helper()
	answer, err := nc.Request("kubecdc.test.echo", []byte(question), limit)
	must(t, err)
	return answer
}

func TestQuestionsAreAnsweredAndRefusedInWords(t *testing.T) {
	s := natsserver.Start(t)
	run(t, optionsOf(s.URL())).await()
	nc := connect(t, s.URL())
	if got := string(ask(t, nc, "hello").Data); got != "hello" {
		t.Errorf("the answer is %q", got)
	}
	for question, want := range map[string]struct{ code, text string }{
		"no":                               {"400", "no:  this is longlong"},
		"broken":                           {"500", "broken"},
		"huge":                             {"507", "an answer of 2097152 bytes, and the server takes 1048576: raise its max_payload"},
		strings.Repeat("x", maxQuestion+1): {"413", "a question of 65537 bytes: want 65536 at most"},
	} {
		answer := ask(t, nc, question)
		code, text := answer.Header.Get(micro.ErrorCodeHeader), answer.Header.Get(micro.ErrorHeader)
		if code != want.code || !strings.HasPrefix(text, want.text) || len(text) > maxDescription || !strings.HasPrefix(string(answer.Data), `{"error":"`) {
			t.Errorf("%.10s: %s %q %.100s", question, code, text, answer.Data)
		}
	}
}

// TestOthersFindTheService as they find every micro service.
func TestOthersFindTheService(t *testing.T) {
	s := natsserver.Start(t)
	run(t, optionsOf(s.URL())).await()
	answer, err := connect(t, s.URL()).Request("$SRV.INFO.kubecdc", nil, limit)
	must(t, err)
	for _, want := range []string{`"version":"1.2.3"`, `"cluster":"test"`, `"subject":"kubecdc.test.echo"`} {
		if !strings.Contains(string(answer.Data), want) {
			t.Errorf("it lacks %s: %s", want, answer.Data)
		}
	}
	for version, want := range map[string]string{"v0.9.0-3-gabc": "0.9.0-3-gabc", "dev": "0.0.0", "": "0.0.0", "1.2": "0.0.0"} {
		if got := semantic(version); got != want {
			t.Errorf("version %q is %q, want %q", version, got, want)
		}
	}
}

// TestWhereAnswersMustNotGoIsRefusedUnread and told. Who wants no answer, and what a stream plays back, is followed.
func TestWhereAnswersMustNotGoIsRefusedUnread(t *testing.T) {
	s := natsserver.Start(t)
	options := optionsOf(s.URL())
	followed := make(chan string, 100)
	options.Endpoints["echo"] = func(_ context.Context, question []byte) ([]byte, error) {
		followed <- string(question)
		return question, nil
	}
	told := make(chan error, 100)
	options.Refused = func(endpoint string, cause error) { told <- fmt.Errorf("%s: %w", endpoint, cause) }
	run(t, options).await()
	nc := connect(t, s.URL())
	answers, err := nc.SubscribeSync("answers.>")
	must(t, err)
	for _, subject := range []string{"k8s.x", "", "answers.x", "answers.here.x"} {
		question := &natsgo.Msg{Subject: "kubecdc.test.echo", Reply: subject, Data: []byte("for " + subject)}
		must(t, nc.PublishMsg(question))
	}
	js, err := jetstream.New(nc)
	if err == nil {
		_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "KEPT", Subjects: []string{"kept"}})
	}
	if err == nil {
		_, err = js.Publish(t.Context(), "kept", []byte("played back"))
	}
	if err == nil {
		_, err = js.CreatePushConsumer(t.Context(), "KEPT", jetstream.ConsumerConfig{
			DeliverSubject: "kubecdc.test.echo", DeliverGroup: micro.DefaultQueueGroup, AckPolicy: jetstream.AckExplicitPolicy,
		})
	}
	must(t, err)
	for _, want := range []string{"for ", "for answers.here.x", "played back"} {
		if got := <-followed; got != want {
			t.Errorf("followed %q, want %q", got, want)
		}
	}
	for _, subject := range []string{"k8s.x", "answers.x"} {
		want := fmt.Sprintf("echo: its answer was to go to subject %q: ask for it below _INBOX. or answers.here., "+
			"or allow another place with nats.service.inboxes", subject)
		if got := <-told; got.Error() != want {
			t.Errorf("told of %v, want %s", got, want)
		}
	}
	if m, err := answers.NextMsg(limit); err != nil || m.Subject != "answers.here.x" {
		t.Errorf("got %v, %v", m, err)
	}
}

// TestStatisticsCountWhatWasAsked, refused or not.
func TestStatisticsCountWhatWasAsked(t *testing.T) {
	s := natsserver.Start(t)
	run(t, optionsOf(s.URL())).await()
	nc := connect(t, s.URL())
	for _, question := range []string{"a", "broken", "b"} {
		ask(t, nc, question)
	}
	answer, err := nc.Request("$SRV.STATS.kubecdc", nil, limit)
	must(t, err)
	var stats micro.Stats
	if err := json.Unmarshal(answer.Data, &stats); err != nil || len(stats.Endpoints) != 1 {
		t.Fatalf("got %s, %v", answer.Data, err)
	}
	e := stats.Endpoints[0]
	if e.NumRequests != 3 || e.NumErrors != 1 || e.LastError != "500:broken" || stats.Type != micro.StatsResponseType || stats.Started.IsZero() {
		t.Errorf("got %s", answer.Data)
	}
}

// TestItServesAgainBehindAnOutage, which it has told of.
func TestItServesAgainBehindAnOutage(t *testing.T) {
	s := natsserver.Start(t)
	url := s.URL()
	r := run(t, optionsOf(url))
	r.await()
	s.Stop()
	if err := <-r.failures; !strings.Contains(err.Error(), "connection is lost") {
		t.Errorf("told of %v", err)
	}
	s.Restart(t)
	r.await()
	if got := string(ask(t, connect(t, url), "again").Data); got != "again" {
		t.Errorf("the answer is %q", got)
	}
}

// TestWhatIsNotPermittedIsToldInWords, while it is tried and when it is checked.
func TestWhatIsNotPermittedIsToldInWords(t *testing.T) {
	s := natsserver.Start(t, func(o *natsserver.Options) {
		o.Users = []*server.User{{Username: "u", Password: "p", Permissions: &server.Permissions{
			Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>", "$SRV.>"}},
		}}}
	})
	url := strings.Replace(s.URL(), "://", "://u:p@", 1)
	const want = `serve kubecdc.test.>: subscription to "kubecdc.test.echo": not permitted by the server: allow it to the sink's user`
	if err := <-run(t, optionsOf(url)).failures; !strings.Contains(strings.ReplaceAll(err.Error(), ` using queue "q"`, ""), want) {
		t.Errorf("told of %v", err)
	}
	if err := New(optionsOf(url)).Check(t.Context()); err == nil || err.Error() != want {
		t.Errorf("checked: %v", err)
	}
	allowed := natsserver.Start(t)
	if err := New(optionsOf(allowed.URL())).Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestI6FewQuestionsWait, whatever comes while one is answered; and a stop does not wait for those that do.
func TestI6FewQuestionsWait(t *testing.T) {
	s := natsserver.Start(t)
	options := optionsOf(s.URL())
	var taken atomic.Int64
	begun, end := make(chan struct{}), make(chan struct{})
	options.Endpoints["echo"] = func(context.Context, []byte) ([]byte, error) {
		if taken.Add(1) == 1 {
			close(begun)
			<-end
		}
		return nil, nil
	}
	run(t, options).await()
	nc := connect(t, s.URL())
	const many = 5000
	for range many {
		must(t, nc.PublishRequest("kubecdc.test.echo", nc.NewInbox(), make([]byte, 1024)))
	}
	<-begun
	must(t, nc.FlushTimeout(limit))
	// The server hands on in order, so what is after the flood shows that the flood has come.
	if _, err := nc.Request("$SRV.PING.kubecdc", nil, limit); err != nil {
		t.Fatal(err)
	}
	close(end)
	for { // there is room again, some time
		if _, err := nc.Request("kubecdc.test.echo", nil, 100*time.Millisecond); err == nil {
			break
		} else if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
	if n := taken.Load(); n > waiting+20 {
		t.Errorf("%d of %d questions have waited", n, many)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
