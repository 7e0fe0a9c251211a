package nats

import (
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// newReader is a reader that is closed with the test.
func newReader(t *testing.T, s *testServer, start sink.Start) *Reader {
	t.Helper()
	r, err := NewReader(s.options(), start)
	noError(t, err)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// wantRead reads on to the log's end.
func wantRead(t *testing.T, r *Reader, want ...string) {
	t.Helper()
	var got []string
	err := r.Read(t.Context(), func(m *sink.Stored) error {
		got = append(got, m.Destination)
		return nil
	})
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("read %q (%v), want %q", got, err, want)
	}
}

// withOthers is a stream that takes subjects of somebody else, too.
func withOthers() jetstream.StreamConfig {
	return jetstream.StreamConfig{Name: testStream, Subjects: []string{"k8s.>", "theirs"}}
}

// TestReaderReadsToTheEndThatIsThereNow, in each Read.
func TestReaderReadsToTheEndThatIsThereNow(t *testing.T) {
	s := startServer(t)
	s.create(withOthers())
	r := newReader(t, s, sink.Start{})
	s.publish("k8s.1", "")
	wantRead(t, r, "k8s.1")
	for _, subject := range []string{"k8s.2", "k8s.3", "k8s.4"} {
		s.publish(subject, "")
	}
	wantRead(t, r, "k8s.2", "k8s.3", "k8s.4")
	wantRead(t, r)
}

// The stream's last sequences may be others', of which the reader is never told.
func TestReaderEndsBeforeWhatIsNotForIt(t *testing.T) {
	s := startServer(t)
	s.create(withOthers())
	empty := newReader(t, s, sink.Start{})
	wantRead(t, empty)
	s.publish("theirs", "")
	wantRead(t, empty)
	s.publish("k8s.1", "")
	s.publish("theirs", "")
	for _, r := range []*Reader{empty, newReader(t, s, sink.Start{}), newReader(t, s, sink.Start{Since: time.Now().Add(-time.Hour)})} {
		wantRead(t, r, "k8s.1")
		wantRead(t, r)
	}
	for _, r := range []*Reader{newReader(t, s, sink.Start{End: true}), newReader(t, s, sink.Start{Since: time.Now().Add(time.Hour)})} {
		wantRead(t, r)
	}
}

// Who begins at the end of a stream that is not there yet misses nothing of it.
func TestReaderBeginsWithAStreamThatComes(t *testing.T) {
	s := startServer(t)
	r := newReader(t, s, sink.Start{End: true})
	wantRead(t, r)
	s.create(withOthers())
	s.publish("k8s.1", "")
	wantRead(t, r, "k8s.1")
}
