package nats

import (
	"strings"
	"testing"
)

// TestI4LongSubjectIsRejected as a message, before the server cuts the connection for it: what comes before it is
// stored, and the sink goes on.
func TestI4LongSubjectIsRejected(t *testing.T) {
	s, open := opened(t)
	fits := "k8s." + strings.Repeat("r", open.stream.maxSubject-len("k8s."))
	batch := newMaker().Batch(6)
	batch[2].Destination, batch[3].Destination, batch[4].Destination = fits, fits+"r", "k8s."+strings.Repeat("r", 300_000)
	mark, err := open.Write(within(t), batch)
	for _, long := range []int{3, 0} {
		wantRejected(t, err, long, "invalid")
		if len(err.Error()) > 500 || mark == "" {
			t.Fatalf("got %v", err)
		}
		batch = batch[long+1:]
		mark, err = open.Write(within(t), batch)
	}
	if err != nil || open.conn.Generation() != 0 {
		t.Fatalf("got %v; the connection was lost %d times", err, open.conn.Generation())
	}
	if stored := s.stored(); len(stored) != 4 || stored[2].Destination != fits {
		t.Fatalf("%d messages are stored, the third is not on the long subject", len(stored))
	}
}
