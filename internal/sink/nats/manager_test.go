package nats

import (
	"slices"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/test/sinktest"
)

// TestI3PatchesNeedAStreamThatKeepsWhatTheyChange: one that keeps the last messages of a subject alone does not.
func TestI3PatchesNeedAStreamThatKeepsWhatTheyChange(t *testing.T) {
	s := startServer(t)
	s.create(jetstream.StreamConfig{Name: testStream, Subjects: []string{"k8s.>"}, MaxMsgsPerSubject: 5})
	options := s.options()
	openSink(t, options)
	options.Uncompacted = "updates are patches: choose updates: whole"
	const want = "open stream K8S: it keeps 5 messages of each subject, and updates are patches: choose updates: whole, or name another stream"
	wantError(t, openError(t, options, ""), want)
	_, err := check(t, options)
	wantError(t, err, want)
}

// TestI10SharedStreamNeedsAWindow, and what the sink makes has it.
func TestI10SharedStreamNeedsAWindow(t *testing.T) {
	s := startServer(t)
	openSink(t, s.options())
	options := s.options()
	options.Shared = true
	wantError(t, openError(t, options, ""), "open stream K8S: it knows ids for 100ms, and a shared stream needs 2m0s: raise its duplicate_window")
	s.deleteStream()
	openSink(t, options)
}

// TestI3TwoWritersOnASharedStream: what both send is there twice, also where ids and subjects are the same, and each
// one's tail tells of its own alone. A successor with the same state is the same writer.
func TestI3TwoWritersOnASharedStream(t *testing.T) {
	s := startServer(t)
	options := s.options()
	options.Shared, options.Writer = true, "a"
	others := options
	others.Writer = "b"
	first, second, successor := openSink(t, options), openSink(t, others), openSink(t, options)
	before := write(t, first, nil)
	maker := newMaker()
	batch := maker.Batch(20)
	write(t, first, batch[:10])
	s.publish("k8s.x", "somebody else's")
	write(t, second, batch)
	write(t, successor, batch)
	mark := write(t, first, batch[10:])
	more := maker.Batch(3)
	write(t, second, more)
	moved := slices.Clone(batch[:1])
	moved[0].Destination = "k8s.elsewhere"
	write(t, first, moved)
	want := append(idsOf(batch[:10]), "somebody else's")
	want = append(append(append(want, idsOf(batch)...), idsOf(batch[10:])...), idsOf(more)...)
	wantIDs(t, s.ids(), append(want, moved[0].ID))
	for at, tail := range map[sink.Mark][]string{before: append(idsOf(batch), moved[0].ID), mark: {moved[0].ID}} {
		wantIDs(t, openAt(t, newSink(t, options), at), tail)
	}
	atFirst := write(t, openSink(t, others), nil)
	again := maker.Batch(2)
	write(t, first, again)
	write(t, second, again[:1])
	wantIDs(t, openAt(t, newSink(t, others), atFirst), idsOf(again[:1]))
}

// TestI4StreamThatBeginsLaterIsNotLost: before its first message it looks as if it was purged.
func TestI4StreamThatBeginsLaterIsNotLost(t *testing.T) {
	s := startServer(t)
	s.create(jetstream.StreamConfig{Name: testStream, Subjects: []string{"k8s.>"}, FirstSeq: 1000})
	publisher := openSink(t, s.options())
	mark := write(t, publisher, nil)
	if _, err := sinktest.Open(within(t), publisher, mark); err != nil || publisher.stream.place.Seq != 999 {
		t.Fatalf("got %d, %v", publisher.stream.place.Seq, err)
	}
}

// TestCheckNotesWhatConsumersAndRestartsMayLose, and what is slower than it could be.
func TestCheckNotesWhatConsumersAndRestartsMayLose(t *testing.T) {
	s := startServer(t, func(o *server.Options) { o.MaxPayload = 8 << 20 })
	options := s.options()
	options.MaxBytes, options.Storage = 1<<30, StorageMemory
	const want = "stream K8S drops its oldest messages at 1073741824 bytes (discard old): a consumer that is slower loses them without a word; " +
		"stream K8S is in memory: a restart of its servers loses it, and all objects are sent again"
	wantNote(t, options, want)
	s.create(jetstream.StreamConfig{Name: testStream, Subjects: []string{"k8s.>"}, MaxMsgs: 7})
	const other = "stream K8S drops its oldest messages at 7 messages (discard old): a consumer that is slower loses them without a word"
	wantNote(t, s.options(), other)
}

// TestI1OnlyTheLeaderKnowsTheEnd: what other replicas say may be old.
func TestI1OnlyTheLeaderKnowsTheEnd(t *testing.T) {
	a, b := &jetstream.PeerInfo{Name: "a"}, &jetstream.PeerInfo{Name: "b"}
	for _, test := range []struct {
		cluster *jetstream.ClusterInfo
		want    bool
	}{
		{nil, true},
		{&jetstream.ClusterInfo{Leader: "c"}, true},
		{&jetstream.ClusterInfo{Leader: "c", Replicas: []*jetstream.PeerInfo{a, b}}, true},
		{&jetstream.ClusterInfo{Leader: "a", Replicas: []*jetstream.PeerInfo{a, b}}, false},
		{&jetstream.ClusterInfo{Replicas: []*jetstream.PeerInfo{a, b}}, false},
	} {
		if got := ofLeader(test.cluster); got != test.want {
			t.Errorf("%+v: got %t", test.cluster, got)
		}
	}
}
