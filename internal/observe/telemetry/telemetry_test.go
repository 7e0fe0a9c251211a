package telemetry

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/listener"
	"github.com/kubecdc/kubecdc/internal/sink"
)

func streamOf(resource string) change.Stream {
	return change.Stream{Resource: change.Resource{Version: "v1", Name: resource}}
}

func pods() change.Stream { return streamOf("pods") }

func newTelemetry(log io.Writer) *Telemetry {
	return New(Options{
		ClusterName: "dev", ClusterUID: "epoch-1", Streams: []change.Stream{pods(), streamOf("nodes")}, Sinks: map[string]Place{"lake": {}, "bus": {}},
		Logger: slog.New(slog.NewTextHandler(log, nil)), CountObjects: func(string, change.Stream) (int, error) { return 0, nil },
		CountLetters: func(string) (int, error) { return 0, nil },
	})
}

// TestEveryMetricHasItsCluster, also those of the process.
func TestEveryMetricHasItsCluster(t *testing.T) {
	_, body := get(newTelemetry(io.Discard), "/metrics")
	for line := range strings.Lines(body) {
		if !strings.HasPrefix(line, "#") && !strings.Contains(line, `cluster="dev"`) {
			t.Errorf("without its cluster: %s", line)
		}
	}
}

// standing says of streams since when the oldest record waits for the sink; zero is that none does.
func standing(oldest map[string]time.Time) func() *listener.Views {
	views := &listener.Views{Streams: map[string][]listener.View{}}
	for name, since := range oldest {
		views.Streams[name] = []listener.View{{Sink: "bus", Version: "100", Moved: time.Now(), Oldest: since}}
	}
	return func() *listener.Views { return views }
}

// course is what the pipeline tells of so many records, in batches of two streams by turns.
func course(t *Telemetry, records []*change.Record) {
	for _, rec := range records {
		t.Received(rec)
	}
	t.Written("bus", records, time.Millisecond)
	t.Committed(time.Millisecond)
}

func records(n int) []*change.Record {
	both := []change.Stream{pods(), streamOf("nodes")}
	var all []*change.Record
	for i := range n {
		all = append(all, &change.Record{
			Stream: &both[i/3%2], Op: change.Added + change.Op(i%2), Object: []byte("{}"), Received: time.Now(),
			ResourceVersion: "7",
		})
	}
	return all
}

// get asks the process for a page.
func get(t *Telemetry, path string) (code int, body string) {
	answer := httptest.NewRecorder()
	t.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
	return answer.Code, answer.Body.String()
}

func snapshot(reason change.Reason, sinks ...string) *change.Snapshot {
	return &change.Snapshot{Reason: reason, Sinks: sinks, From: "100", ResourceVersion: "300", Since: time.Unix(1000, 0), Epoch: "epoch-2"}
}

// TestI6NoNameMakesALongStatus: names of some kinds are bounded by etcd alone, and errors name objects. Those that
// differ in the middle only are still told apart.
func TestI6NoNameMakesALongStatus(t *testing.T) {
	tel, stream := newTelemetry(io.Discard), pods()
	named := func(middle string) *change.Record {
		half := strings.Repeat("n", 150_000)
		return &change.Record{
			Stream: &stream, Key: change.Key{Namespace: "n", Name: half + middle + half}, ResourceVersion: "7",
			Replay: &change.Replay{Letter: "abc"},
		}
	}
	failed := errors.New("write " + named("x").Key.String())
	for _, middle := range []string{"a", "b", "c", "d", "e"} {
		tel.Rejected("bus", named(middle), "too_large", failed)
	}
	tel.Replayed("bus", named("d"), nil)
	resolved := 0
	for _, gap := range tel.Status().Sinks["bus"].RecentGaps {
		if !gap.Resolved.IsZero() {
			resolved++
		}
	}
	if resolved != 1 {
		t.Errorf("%d gaps are resolved by one replay", resolved)
	}
	tel.StreamFailed(stream, Failed, failed)
	tel.SinkFailed("bus", failed)
	tel.Stopped("lake", failed)
	tel.Hears("bus", failed)
	tel.SchemaWaits("bus", "pods", failed, true)
	tel.SchemaKnown("bus", "nodes", sink.Schema{}, failed)
	tel.Discovered(nil, failed)
	tel.CommitFailed(failed)
	for _, path := range []string{"/statusz", "/readyz?verbose", "/healthz"} {
		_, body := get(tel, path)
		if len(body) > 100_000 {
			t.Errorf("%s has %d bytes", path, len(body))
		}
	}
	for _, tell := range []func(){
		func() { tel.NotKept("lake", failed) }, func() { tel.Retried("lake", "timeout", failed) },
	} {
		tell()
		if n := len(tel.Status().Sinks["lake"].LastError); n > 10_000 {
			t.Errorf("the last error has %d bytes", n)
		}
	}
}

// TestAnAgeIsNeverNegative, as what comes while a status is made is newer than the status.
func TestAnAgeIsNeverNegative(t *testing.T) {
	now := time.Now()
	for then, want := range map[time.Time]float64{{}: 0, now.Add(-2 * time.Second): 2, now.Add(time.Microsecond): 0} {
		if got := age(now, then); got != want {
			t.Errorf("the age of %v at %v is %v s, want %v", then, now, got, want)
		}
	}
}

// TestAReplayResolvesItsGap on /statusz, where a document that was handed out stays as it was.
func TestAReplayResolvesItsGap(t *testing.T) {
	tel, stream := newTelemetry(io.Discard), pods()
	rejected := func(name string) *change.Record {
		return &change.Record{Stream: &stream, Key: change.Key{Namespace: "n", Name: name}, ResourceVersion: "7", Replay: &change.Replay{Letter: "abc"}}
	}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "huge"} {
		tel.Rejected("bus", rejected(name), "too_large", errors.New("above the limit"))
	}
	before := tel.Status()
	tel.Replayed("bus", rejected("huge"), nil)
	after := tel.Status()
	recent := after.Sinks["bus"].RecentGaps
	if len(recent) != mostGaps || recent[0].Object != "n/huge" || recent[0].Rejected != "too_large" || recent[0].Resolved.IsZero() || !recent[1].Resolved.IsZero() {
		t.Errorf("the newest of %d gaps are %+v and %+v", len(recent), recent[0], recent[1])
	}
	if after.Sinks["bus"].LastGap.Resolved.IsZero() || after.Streams["pods"].LastGap.Resolved.IsZero() || after.Sinks["bus"].Gaps != 7 {
		t.Errorf("the last gap is %+v of %d", after.Sinks["bus"].LastGap, after.Sinks["bus"].Gaps)
	}
	if !before.Sinks["bus"].RecentGaps[0].Resolved.IsZero() {
		t.Error("a document changes after it was handed out")
	}
}

// TestAFleetShowsEachClusterAndTheProcessOnce, and one that is not followed makes no probe fail.
func TestAFleetShowsEachClusterAndTheProcessOnce(t *testing.T) {
	f := NewFleet()
	ask := func(path string) (int, string) {
		answer := httptest.NewRecorder()
		f.Handler().ServeHTTP(answer, httptest.NewRequest("GET", path, nil))
		return answer.Code, answer.Body.String()
	}
	for _, name := range []string{"a", "b", "away"} {
		f.Add(name)
	}
	if code, text := ask("/readyz"); code != 503 || !strings.Contains(text, "task away: has not started") {
		t.Errorf("before anything has started /readyz is %d, %s", code, text)
	}
	for _, name := range []string{"a", "b"} {
		f.Follows(name, New(Options{ClusterName: name, OfFleet: true}))
	}
	f.Failed("away", errors.New("refused"))
	for _, path := range []string{"/readyz", "/healthz"} {
		if code, text := ask(path); code != 200 {
			t.Errorf("%s is %d, %s", path, code, text)
		}
	}
	_, metrics := ask("/metrics")
	for series, times := range map[string]int{
		"\nprocess_start_time_seconds": 1, "\ngo_goroutines": 1, "\nkubecdc_build_info{": 2, "\nkubecdc_task_up{task=\"away\"} 0": 1, "\nkubecdc_task_up{task=\"a\"} 1": 1,
	} {
		if found := strings.Count(metrics, series); found != times {
			t.Errorf("/metrics has %q %d times, want %d", series, found, times)
		}
	}
	if _, status := ask("/statusz"); !strings.Contains(status, `"problem": "refused"`) {
		t.Errorf("/statusz is %s", status)
	}
	f.Remove("away")
	if _, status := ask("/statusz"); strings.Contains(status, "away") {
		t.Errorf("/statusz still has the cluster: %s", status)
	}
}

func BenchmarkRecord(b *testing.B) {
	telemetry, batch := newTelemetry(io.Discard), records(1000)
	b.ReportAllocs()
	for b.Loop() {
		course(telemetry, batch)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(batch)), "ns/record")
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
