package pipeline

import (
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// ask sends a request and returns its answer.
func ask(t *testing.T, requests chan<- Request, sinkName string, streams ...string) error {
	t.Helper()
	answer := make(chan error, 1)
	select {
	case requests <- Request{Reason: change.Requested, Streams: streams, Sink: sinkName, Answer: answer}:
	case <-t.Context().Done():
		t.Fatal("nobody takes requests")
	}
	return <-answer
}

func requestRig(t *testing.T) (*rig, chan Request) {
	narrow := sinkOf("narrow", &memory{})
	narrow.Wants = func(s *change.Stream) bool { return s.String() == "services" }
	r := newRig(t, sinkOf("all", &memory{}), narrow)
	requests := make(chan Request)
	r.config.Requests = requests
	return r, requests
}

func TestI4RequestIsOwedUntilItsSnapshotIsDelivered(t *testing.T) {
	r, requests := requestRig(t)
	if err := r.life(func(line *Inlet) {
		r.push(line, update(pods(), "a", 1), update(services(), "b", 2))
		r.drain(line, pods(), services())
		if err := ask(t, requests, ""); err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	const want = "pods requested all, services requested all, services requested narrow"
	if got := r.requested(); got != want {
		t.Errorf("requests are %q, want %q", got, want)
	}
	r.requests = nil
	stream := pods()
	end := &change.Record{Stream: &stream, Op: change.SnapshotEnd, Sink: "all", Snapshot: &change.Snapshot{Reason: change.Requested}}
	if err := r.life(func(line *Inlet) { r.push(line, end) }); err != nil {
		t.Fatal(err)
	}
	if got := r.requested(); got != want {
		t.Errorf("requests after a crash are %q, want %q", got, want)
	}
	r.requests = nil
	if err := r.life(func(*Inlet) {}); err != nil || r.requested() != "services requested all, services requested narrow" {
		t.Errorf("%v; requests after the first snapshot are %q", err, r.requested())
	}
}

// The end of the first snapshot does not pay for a second one that was asked for meanwhile.
func TestI4SameRequestTwiceIsOwedTwice(t *testing.T) {
	r, requests := requestRig(t)
	var owed []change.Owed
	r.config.Sources[0].Request = func(o ...change.Owed) { owed = append(owed, o...) }
	stream := pods()
	if err := r.life(func(line *Inlet) {
		for range 2 {
			if err := ask(t, requests, "all", "pods"); err != nil {
				t.Error(err)
			}
		}
		r.push(line, &change.Record{Stream: &stream, Op: change.SnapshotEnd, Sink: "all", Snapshot: &change.Snapshot{Reason: change.Requested}})
	}); err != nil {
		t.Fatal(err)
	}
	if len(owed) != 2 || owed[0].Generation != 0 || owed[1].Generation != 1 {
		t.Fatalf("asked for %+v, want two generations", owed)
	}
	if err := r.life(func(*Inlet) {}); err != nil || len(owed) != 3 || owed[2].Generation != 1 {
		t.Errorf("%v; a crash leaves %+v, want the second generation owed", err, owed[2:])
	}
}

// TestI4RequestsOfPartsAreOwedEachByItself, and of the streams that may have any of them.
func TestI4RequestsOfPartsAreOwedEachByItself(t *testing.T) {
	r, requests := requestRig(t)
	r.config.Sources[1].Stream.Resource.ClusterScoped = true
	var owed []change.Owed
	r.config.Sources[0].Request = func(o ...change.Owed) { owed = append(owed, o...) }
	shop, mall := change.Limits{Namespace: "shop"}, change.Limits{Namespace: "mall"}
	stream := pods()
	if err := r.life(func(line *Inlet) {
		r.push(line, update(pods(), "a", 1), update(services(), "b", 2))
		r.drain(line, pods(), services())
		for _, limits := range []change.Limits{{}, shop, mall} {
			answer := make(chan error, 1)
			requests <- Request{Reason: change.Requested, Sink: "all", Limits: limits, Answer: answer}
			if err := <-answer; err != nil {
				t.Error(err)
			}
		}
		r.push(line, &change.Record{Stream: &stream, Op: change.SnapshotEnd, Sink: "all", Snapshot: &change.Snapshot{Reason: change.Requested, Limits: shop}})
	}); err != nil {
		t.Fatal(err)
	}
	if got := r.requested(); got != "services requested all" { // for the one of all
		t.Errorf("of the resource without namespaces requests are %q", got)
	}
	if len(owed) != 3 || owed[1].Limits != shop || owed[2].Limits != mall || owed[2].Generation != 0 {
		t.Fatalf("asked for %+v", owed)
	}
	if err := r.life(func(*Inlet) {}); err != nil || len(owed) != 5 || owed[3].Limits != (change.Limits{}) || owed[4].Limits != mall {
		t.Errorf("%v; behind the end of one, the next life asks for %+v", err, owed[3:])
	}
}

func TestRequestThatNamesWhatIsNotThereIsRefused(t *testing.T) {
	r, requests := requestRig(t)
	if err := r.life(func(*Inlet) {
		for want, err := range map[string]error{
			`ask for a snapshot of "nodes": there is no such stream: choose of pods, services`:          ask(t, requests, "", "pods", "nodes"),
			`ask for a snapshot for sink "lake": there is no such sink: choose of all, narrow`:          ask(t, requests, "lake"),
			`ask for a snapshot of pods: no sink that is asked for takes it: choose others of services`: ask(t, requests, "narrow", "pods"),
		} {
			if err == nil || err.Error() != want {
				t.Errorf("error is %v, want %s", err, want)
			}
		}
		answer := make(chan error, 1)
		requests <- Request{Reason: change.Lost, Answer: answer}
		if err := <-answer; err == nil || !strings.Contains(err.Error(), `only "requested"`) {
			t.Errorf("a request of another reason: %v", err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if got := r.requested(); got != "" {
		t.Errorf("requests are %q, want none", got)
	}
}
