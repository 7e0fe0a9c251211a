package nats

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/test/sinktest"
)

// wantLate wants what Write says of the last words of an earlier exporter.
func wantLate(t *testing.T, err error, seq int) {
	t.Helper()
	var late *sink.LateError
	if !errors.As(err, &late) {
		t.Fatalf("got %v, want a LateError", err)
	}
	wantError(t, err, "write to stream K8S: message "+strconv.Itoa(seq)+" came after it was opened: "+
		"an earlier exporter had sent it when it was killed, or another one writes to the stream")
}

// dying leaves the batch on its way to the server, in a network that holds it until the returned function is called,
// and is killed. So many messages of the batch arrive and are acknowledged before, none or the first one. That function
// returns when the server has read all of it.
func dying(t *testing.T, s *testServer, batch []sink.Message, acked int) (mark sink.Mark, release func()) {
	t.Helper()
	network, options := startProxy(t, s.Addr().String()), s.options()
	options.URL = network.url()
	killed := openSink(t, options)
	mark = write(t, killed, newMaker().Batch(1))
	if acked == 0 {
		network.hold()
	} else {
		network.holdBehind(batch[0].ID + "\r\n")
	}
	last := batch[underWay(batch, acked)-1].ID
	ctx, kill := context.WithCancel(within(t))
	go func() {
		network.awaitHeld(last + "\r\n")
		network.hold()
		kill()
	}()
	if _, err := killed.Write(ctx, batch); !errors.Is(err, context.Canceled) {
		t.Fatalf("a Write that nobody answers: %v", err)
	}
	return mark, func() { network.release(t) }
}

// dead is a stream to which a killed exporter wrote the first message, with its last words under way, and the next one.
type dead struct {
	*testServer
	next        *Sink
	mark        sink.Mark
	release     func() // lets the last words come
	first, late []sink.Message
	more        []sink.Message // that nobody has written
}

// died opens the next exporter of one that was killed when so many messages of its last words had come.
func died(t *testing.T, acked int) *dead {
	t.Helper()
	d, maker := &dead{testServer: startServer(t)}, newMaker()
	d.first, d.late, d.more = maker.Batch(1), maker.Batch(50), maker.Batch(5)
	d.mark, d.release = dying(t, d.testServer, d.late, acked)
	d.next = newSink(t, d.options())
	if ids := openAt(t, d.next, d.mark); len(ids) != acked {
		t.Fatalf("got %q", ids)
	}
	return d
}

// underWay is how many messages of a batch were sent when so many of them are acknowledged.
func underWay(batch []sink.Message, acked int) int {
	last := map[string]int{}
	for i := range batch {
		before, sent := last[batch[i].Object()]
		if i > 0 && acked == 0 || sent && before >= acked { // the first message goes alone, and one of an object
			return i
		}
		last[batch[i].Object()] = i
	}
	return len(batch)
}

// awaitStored returns when the stream has stored so many messages: it may have read them only.
func (s *testServer) awaitStored(n int) {
	s.t.Helper()
	for ctx := within(s.t); len(s.ids()) < n; sink.Pause(ctx, time.Millisecond, nil) {
		if ctx.Err() != nil {
			s.t.Fatalf("the stream has %d messages, want %d", len(s.ids()), n)
		}
	}
}

// TestI3LastWordsOfAKilledExporter come when the next one has opened its log: before its first message, which is in
// another order, they are told, and nothing is written after them. Who begins anew finds them.
func TestI3LastWordsOfAKilledExporter(t *testing.T) {
	d := died(t, 0)
	d.release()
	_, err := d.next.Write(within(t), slices.Concat(d.more, d.late))
	wantLate(t, err, 2)
	again := newSink(t, d.options())
	ids := openAt(t, again, d.mark)
	if len(ids) == 0 {
		t.Fatal("they are not found")
	}
	wantIDs(t, ids, idsOf(d.late[:len(ids)]))
	write(t, again, slices.Concat(d.more, d.late[len(ids):]))
	wantIDs(t, d.ids(), slices.Concat(idsOf(d.first), ids, idsOf(d.more), idsOf(d.late[len(ids):])))
}

// TestI3LastWordsBehindTheFirstMessageAreRefused by the server, whatever the next exporter has written.
func TestI3LastWordsBehindTheFirstMessageAreRefused(t *testing.T) {
	d := died(t, 0)
	write(t, d.next, d.more[:1])
	d.release()
	write(t, d.next, d.more[1:])
	wantIDs(t, d.ids(), idsOf(append(d.first, d.more...)))
}

// TestI3LastWordsBehindTheFirstMessageAreTold where many are under way. The one that the next exporter's
// first message has taken the place of is refused by the server. Those after it fit behind that one, none of an object
// whose older message was refused. They are no other exporter's.
func TestI3LastWordsBehindTheFirstMessageAreTold(t *testing.T) {
	d := died(t, 1)
	write(t, d.next, d.more[:1])
	d.release()
	want := append(d.first, d.late[0], d.more[0])
	d.awaitStored(len(want) + 1)
	_, err := d.next.Write(within(t), d.more[1:])
	wantLate(t, err, len(want)+1)
	openAt(t, d.next, d.mark)
	want = append(want, d.late[2:underWay(d.late, 1)]...)
	write(t, d.next, d.more[1:])
	wantIDs(t, d.ids(), idsOf(append(want, d.more[1:]...)))
}

// TestI3LastWordsWhileTheSinkIsAway: they come after a Write that failed for another reason. Who opens the same sink
// again does not read its log as one that it knows nothing of, and is told.
func TestI3LastWordsWhileTheSinkIsAway(t *testing.T) {
	d := died(t, 0)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.next.Write(ended, d.more); err == nil {
		t.Fatal("a Write that was cancelled")
	}
	d.release()
	d.awaitStored(1 + underWay(d.late, 0))
	again := sink.Opening{Mark: d.mark, Again: true, After: func() func(string) { return func(string) {} }}
	err := d.next.Open(within(t), again)
	if !errors.As(err, new(*sink.LateError)) {
		t.Fatalf("got %v, want a LateError", err)
	}
	wantError(t, err, "open stream K8S: message 2 came after it was opened: "+
		"an earlier exporter had sent it when it was killed, or another one writes to the stream")
	if ids := openAt(t, d.next, d.mark); len(ids) == 0 {
		t.Fatal("they are not found")
	}
	write(t, d.next, d.more)
	noError(t, d.next.Open(within(t), again)) // what was written is no stranger's
}

// TestI3LastWordsThatAreOursToo: the next exporter writes the same records in the same order. Those that came late are
// not written again, and what comes after them is no other exporter's.
func TestI3LastWordsThatAreOursToo(t *testing.T) {
	d := died(t, 1)
	came := d.late[:underWay(d.late, 1)]
	d.release()
	d.awaitStored(1 + len(came))
	write(t, d.next, came[1:])
	d.publish("k8s.x", d.more[0].ID)
	_, err := d.next.Write(within(t), d.more[1:])
	wantLate(t, err, len(came)+2)
	wantIDs(t, d.ids(), idsOf(slices.Concat(d.first, came, d.more[:1])))
}

// TestI10LastWordsEnd: a killed exporter had only so many messages under way. Who writes more lives.
func TestI10LastWordsEnd(t *testing.T) {
	s, publisher := opened(t)
	publisher.tuning.quiet = 10 * time.Millisecond
	other := openSink(t, s.options())
	maker := newMaker()
	for range 5 { // opened again in between, however often
		write(t, other, maker.Batch(1))
		mark := openedEnd(t, publisher)
		last := maker.Batch(1)
		write(t, other, last)
		_, err := publisher.Write(within(t), maker.Batch(3))
		wantLate(t, err, len(s.ids()))
		if ids, err := sinktest.Open(within(t), publisher, mark); err != nil || !slices.Equal(ids, idsOf(last)) {
			t.Fatalf("got %q and %v", ids, err)
		}
	}
	at, lives := len(s.ids()), maker.Batch(mostUnderWay+1)
	write(t, other, lives)
	_, err := publisher.Write(within(t), maker.Batch(3))
	var permanent *sink.PermanentError
	if !errors.As(err, &permanent) || !permanent.Fenced {
		t.Fatalf("got %v, want another writer", err)
	}
	wantError(t, err, "write to stream K8S: message "+strconv.Itoa(at+1)+" on subject \""+lives[0].Destination+
		"\" is not ours: another exporter writes to the stream: stop it, or give each a stream of its own with the key stream")
}

// TestI10SecondWriterInsideAWindow: another exporter's message comes between two that are under way. The run ends, and
// nothing is stored of an object without what was before it.
func TestI10SecondWriterInsideAWindow(t *testing.T) {
	s, network, options := proxied(t)
	publisher, maker := openSink(t, options), newMaker()
	before, batch := maker.Batch(2), maker.Batch(50)
	write(t, publisher, before)
	network.holdBehind(batch[0].ID + "\r\n")
	sent := underWay(batch, 1)
	ctx, failed := within(t), make(chan error)
	go func() {
		_, err := publisher.Write(ctx, batch)
		failed <- err
	}()
	network.awaitHeld(batch[sent-1].ID + "\r\n")
	s.publish("k8s.x", "other")
	network.release(t)
	var permanent *sink.PermanentError
	if err := <-failed; !errors.As(err, &permanent) || !permanent.Fenced {
		t.Fatalf("got %v, want another writer", err)
	}
	for _, m := range batch[2:sent] {
		if m.Object() == batch[1].Object() {
			t.Fatalf("%s was under way with the message before it", m.ID)
		}
	}
	wantIDs(t, s.ids(), slices.Concat(idsOf(before), idsOf(batch[:1]), []string{"other"}, idsOf(batch[2:sent])))
}

// TestI10AFrameWaitsForAllBeforeIt: another's message takes the place of one that is under way. The snapshot's end,
// which would fit behind the others, is not stored: who reads it would take them for written.
func TestI10AFrameWaitsForAllBeforeIt(t *testing.T) {
	s, network, options := proxied(t)
	publisher := openSink(t, options)
	batch := []sink.Message{told("a", change.Replaced), told("b", change.Replaced), told("c", change.Replaced), told("", change.SnapshotEnd)}
	network.holdBehind(batch[0].ID + "\r\n")
	ctx, failed := within(t), make(chan error)
	go func() {
		_, err := publisher.Write(ctx, batch)
		failed <- err
	}()
	network.awaitHeld(batch[2].ID + "\r\n")
	s.publish("k8s.x", "other")
	network.release(t)
	if err := <-failed; err == nil {
		t.Fatal("another's message is not noticed")
	}
	wantIDs(t, s.ids(), []string{batch[0].ID, "other", batch[2].ID})
}

// openedEnd opens the sink anew, and returns the mark of the log's end.
func openedEnd(t *testing.T, s *Sink) sink.Mark {
	t.Helper()
	openAt(t, s, "")
	return write(t, s, nil)
}

// TestI10SlowLastWordsAreHeardOut: a slow network brings them one by one. The next Open finds all of them.
func TestI10SlowLastWordsAreHeardOut(t *testing.T) {
	s := startServer(t)
	maker := newMaker()
	publisher := openSink(t, s.options())
	publisher.tuning.quiet = 2 * time.Second
	before := write(t, publisher, nil)
	last, batch := maker.Batch(10), maker.Batch(3)
	s.publish("k8s.x", last[0].ID)
	ctx, failed := within(t), make(chan error)
	go func() {
		_, err := publisher.Write(ctx, batch)
		failed <- err
	}()
	network := time.NewTicker(50 * time.Millisecond)
	defer network.Stop()
	for _, m := range last[1:] {
		<-network.C
		s.publish("k8s.x", m.ID)
	}
	wantLate(t, <-failed, 1)
	if ids, err := sinktest.Open(ctx, publisher, before); err != nil || len(ids) != len(last) {
		t.Errorf("the next Open finds %d messages, %v, want %d", len(ids), err, len(last))
	}
	write(t, publisher, batch)
}
