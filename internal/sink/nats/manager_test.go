package nats

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

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
