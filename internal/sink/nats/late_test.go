package nats

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

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
func dying(t *testing.T, s *testServer, options Options, batch []sink.Message, acked int) (mark sink.Mark, release func()) {
	t.Helper()
	network := startProxy(t, s.Addr().String())
	options.URL = network.url()
	killed := openSink(t, options)
	mark = write(t, killed, newMaker().Batch(1))
	if acked == 0 {
		network.hold()
	} else {
		network.holdBehind(batch[0].ID + "\r\n")
	}
	last := batch[underWay(options.Single, batch, acked)-1].ID
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

// underWay is how many messages of a batch were sent when so many of them are acknowledged.
func underWay(single bool, batch []sink.Message, acked int) int {
	if !single {
		return len(batch)
	}
	sent := 1 // the first message goes alone
	for previous := predecessors(batch); acked > 0 && sent < len(batch) && previous[sent] < acked; {
		sent++
	}
	return sent
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
	eachMode(t, []string{inBatches, oneByOne}, func(t *testing.T, publish string) {
		s := startServer(t)
		maker := newMaker()
		first := idsOf(maker.Batch(1))
		late, other := maker.Batch(50), maker.Batch(5)
		mark, release := dying(t, s, s.options(publish), late, 0)
		next := newSink(t, s.options(publish))
		if ids, err := sinktest.Open(within(t), next, mark); err != nil || len(ids) > 0 {
			t.Fatalf("got %q and %v", ids, err)
		}
		release()
		_, err := next.Write(within(t), append(slices.Clone(other), late...))
		wantLate(t, err, 2)
		again := newSink(t, s.options(publish))
		ids, err := sinktest.Open(within(t), again, mark)
		if err != nil || len(ids) == 0 {
			t.Fatalf("got %q and %v", ids, err)
		}
		wantIDs(t, ids, idsOf(late[:len(ids)]))
		write(t, again, append(slices.Clone(other), late[len(ids):]...))
		wantIDs(t, s.ids(), slices.Concat(first, ids, idsOf(other), idsOf(late[len(ids):])))
	})
}

// TestI3LastWordsBehindTheFirstMessageAreRefused by the server, whatever the next exporter has written.
func TestI3LastWordsBehindTheFirstMessageAreRefused(t *testing.T) {
	eachMode(t, []string{inBatches, oneByOne}, func(t *testing.T, publish string) {
		s := startServer(t)
		maker := newMaker()
		want := maker.Batch(1)
		late, more := maker.Batch(50), maker.Batch(5)
		mark, release := dying(t, s, s.options(publish), late, 0)
		next := newSink(t, s.options(publish))
		openAt(t, next, mark)
		write(t, next, more[:1])
		release()
		write(t, next, more[1:])
		wantIDs(t, s.ids(), idsOf(append(want, more...)))
	})
}

// TestI3LastWordsBehindTheFirstMessageAreTold where many are under way one by one. The one that the next exporter's
// first message has taken the place of is refused by the server. Those after it fit behind that one, none of an object
// whose older message was refused. They are no other exporter's.
func TestI3LastWordsBehindTheFirstMessageAreTold(t *testing.T) {
	s := startServer(t)
	maker := newMaker()
	want := maker.Batch(1)
	late, more := maker.Batch(50), maker.Batch(5)
	mark, release := dying(t, s, s.options(oneByOne), late, 1)
	next := newSink(t, s.options(oneByOne))
	openAt(t, next, mark)
	write(t, next, more[:1])
	release()
	want = append(want, late[0], more[0])
	s.awaitStored(len(want) + 1)
	_, err := next.Write(within(t), more[1:])
	wantLate(t, err, len(want)+1)
	openAt(t, next, mark)
	want = append(want, late[2:underWay(true, late, 1)]...)
	write(t, next, more[1:])
	wantIDs(t, s.ids(), idsOf(append(want, more[1:]...)))
}

// TestI3LastWordsWhileTheSinkIsAway: they come after a Write that failed for another reason. Who opens the same sink
// again does not read its log as one that it knows nothing of, and is told.
func TestI3LastWordsWhileTheSinkIsAway(t *testing.T) {
	eachMode(t, []string{inBatches, oneByOne}, func(t *testing.T, publish string) {
		s := startServer(t)
		maker := newMaker()
		maker.Batch(1)
		late, other := maker.Batch(50), maker.Batch(5)
		mark, release := dying(t, s, s.options(publish), late, 0)
		next := newSink(t, s.options(publish))
		openAt(t, next, mark)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := next.Write(ended, other); err == nil {
			t.Fatal("a Write that was cancelled")
		}
		release()
		s.awaitStored(1 + underWay(publish == oneByOne, late, 0))
		again := sink.Opening{Mark: mark, Again: true, After: func() func(string) { return func(string) {} }}
		err := next.Open(within(t), again)
		var told *sink.LateError
		if !errors.As(err, &told) {
			t.Fatalf("got %v, want a LateError", err)
		}
		wantError(t, err, "open stream K8S: message 2 came after it was opened: "+
			"an earlier exporter had sent it when it was killed, or another one writes to the stream")
		ids, err := sinktest.Open(within(t), next, mark)
		if err != nil || len(ids) == 0 {
			t.Fatalf("got %q and %v", ids, err)
		}
		write(t, next, other)
		if err := next.Open(within(t), again); err != nil {
			t.Fatalf("what was written is no stranger's: %v", err)
		}
	})
}

// TestI3LastWordsThatAreOursToo: the next exporter writes the same records in the same order. Those that came late are
// not written again, and what comes after them is no other exporter's.
func TestI3LastWordsThatAreOursToo(t *testing.T) {
	s := startServer(t)
	maker := newMaker()
	want := maker.Batch(1)
	late, more := maker.Batch(50), maker.Batch(5)
	mark, release := dying(t, s, s.options(), late, 0)
	next := newSink(t, s.options())
	openAt(t, next, mark)
	release()
	write(t, next, late)
	s.publish("k8s.x", more[0].ID)
	_, err := next.Write(within(t), more[1:])
	wantLate(t, err, 52)
	wantIDs(t, s.ids(), idsOf(append(append(want, late...), more[0])))
}

// TestI10LastWordsEnd: a killed exporter had only so many messages under way. Who writes more lives.
func TestI10LastWordsEnd(t *testing.T) {
	s := startServer(t)
	publisher := openSink(t, s.options())
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
		"\" is not ours: another exporter writes to the stream: stop it, or give each its own stream")
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
