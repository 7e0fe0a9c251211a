package control

import (
	"context"
	"errors"
	"testing"
	"time"
)

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
	for _, text := range []string{token.text, "another"} {
		client := asking(t, Handler(f, token), text)
		err := client.Steer(t.Context(), SteerRequest{Do: Pause, IDs: []string{"a", "b"}})
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
	f := functionsOwing(nil)
	f.Owed = func() (*OwedList, error) {
		if asked++; asked == 2 {
			stopped.Time = mine.Time.Add(time.Second)
			return &OwedList{Stopped: []Stopped{stopped}}, nil
		}
		return &OwedList{Owed: []Owed{stopped.Owed}, Stopped: []Stopped{stopped}}, nil
	}
	_, err := listen(t, f).Wait(t.Context(), mine, func([]Owed) {})
	if want := "the snapshot 7mare7x of pods for sink out was stopped: its sink may have a part of it"; err == nil || err.Error() != want || asked != 2 {
		t.Errorf("after %d questions: error %v, want %s", asked, err, want)
	}
}
