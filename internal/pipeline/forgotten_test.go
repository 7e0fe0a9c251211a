package pipeline

import (
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// TestI4I11AStreamThatTheStateForgotOwesAGap: its records are in a sink's log, and the state was put back to before
// its beginning. A stream that the state knows owes none, nor one that nobody has told of.
func TestI4I11AStreamThatTheStateForgotOwesAGap(t *testing.T) {
	for _, c := range []struct {
		name    string
		unsaved *change.Record
		want    string
	}{
		{"a stream that the state does not know", update(services(), "x", 3), "services stale "},
		{"a stream that it knows", update(pods(), "a", 2), ""},
	} {
		target := &memory{}
		r := crashed(t, target, c.unsaved)
		if err := r.life(func(*Inlet) {}); err != nil {
			t.Fatal(err)
		}
		if have := r.requested(); have != c.want {
			t.Errorf("%s: asked for %q, want %q", c.name, have, c.want)
		}
	}
}
