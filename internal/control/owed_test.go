package control

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

func pending(sinkName, stream string, reason change.Reason, generation uint64) checkpoint.PendingSnapshot {
	return checkpoint.PendingSnapshot{Stream: stream, Owed: change.Owed{Sink: sinkName, Reason: reason, Generation: generation}}
}

// TestResyncsAreListedThoughTheyAreNotSaved, and nothing is twice.
func TestResyncsAreListedThoughTheyAreNotSaved(t *testing.T) {
	saved := pending("bus", "pods", change.Requested, 1)
	due := []checkpoint.PendingSnapshot{
		pending("lake", "pods", change.Resync, 0), pending("bus", "pods", change.Requested, 1), pending("bus", "nodes", change.Resync, 0),
		pending("bus", "nodes", change.Requested, 0), // which is delivered by now
	}
	got := ""
	for _, o := range WithDue([]Owed{owedOf(&saved)}, due) {
		got += fmt.Sprintln(o.ID, o.Sink, o.Stream, o.Reason)
	}
	want := fmt.Sprintln(due[2].ID(), "bus nodes resync") + fmt.Sprintln(saved.ID(), "bus pods requested") + fmt.Sprintln(due[0].ID(), "lake pods resync")
	if got != want {
		t.Errorf("listed\n%s\nwant\n%s", got, want)
	}
}

// TestSteeringIsAskedForWithTheToken, and what cannot be done comes back in words.
func TestSteeringIsAskedForWithTheToken(t *testing.T) {
	var asked []SteerRequest
	f := (&fake{}).functions()
	f.Steer = func(_ context.Context, r SteerRequest) error {
		asked = append(asked, r)
		if r.Do == Stop {
			return &RefusedError{"no snapshot"}
		}
		return nil
	}
	server := httptest.NewServer(Handler(f, token))
	defer server.Close()
	for _, text := range []string{token.text, "another"} {
		client, err := NewClient(server.URL, text)
		if err != nil {
			t.Fatal(err)
		}
		err = client.Steer(t.Context(), SteerRequest{Do: Pause, IDs: []string{"a", "b"}})
		if known := text == token.text; (err == nil) != known {
			t.Errorf("with token %s: error %v", text, err)
		}
		err = client.Steer(t.Context(), SteerRequest{Do: Stop, IDs: []string{"a"}})
		var refused *RefusedError
		if known := text == token.text; errors.As(err, &refused) != known || err == nil {
			t.Errorf("with token %s: error %v", text, err)
		}
	}
	if len(asked) != 2 || asked[0].Do != Pause || len(asked[0].IDs) != 2 {
		t.Errorf("asked %+v", asked)
	}
}

// TestWhoWaitsForASnapshotThatIsStoppedIsTold: it must not look complete. One that was stopped before is another one.
func TestWhoWaitsForASnapshotThatIsStoppedIsTold(t *testing.T) {
	mine := &Snapshot{Streams: []string{"pods"}, Sinks: []string{"out"}, Time: time.Now()}
	stopped := Stopped{Owed: Owed{ID: "7mare7x", Sink: "out", Stream: "pods", Reason: "requested"}, Time: mine.Time.Add(-time.Second)}
	asked := 0
	f := functionsOwing(func() []Owed {
		if asked++; asked == 2 {
			stopped.Time = mine.Time.Add(time.Second)
			return nil
		}
		return []Owed{stopped.Owed}
	})
	f.Stopped = func() []Stopped { return []Stopped{stopped} }
	server := httptest.NewServer(Handler(f, token))
	defer server.Close()
	client, err := NewClient(server.URL, token.text)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Wait(t.Context(), mine, func([]Owed) {})
	if want := "the snapshot 7mare7x of pods for sink out was stopped: its sink may have a part of it"; err == nil || err.Error() != want || asked != 2 {
		t.Errorf("after %d questions: error %v, want %s", asked, err, want)
	}
}
