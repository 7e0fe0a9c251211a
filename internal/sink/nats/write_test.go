package nats

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/kubecdc/kubecdc/internal/sink"
)

func TestI3RestartedServer(t *testing.T) {
	s, publisher := opened(t)
	maker := newMaker()
	batches := make([][]sink.Message, 40)
	for i := range batches {
		batches[i] = maker.Batch(500)
	}
	started, failed := make(chan struct{}, len(batches)), make(chan error, 1)
	ctx := within(t)
	go func() {
		for _, batch := range batches {
			started <- struct{}{}
			if _, err := publisher.Write(ctx, batch); err != nil {
				failed <- err
				return
			}
		}
		failed <- nil
	}()
	for i := range 20 {
		<-started
		if i%5 == 4 {
			s.Restart(t)
		}
	}
	noError(t, <-failed)
	wantIDs(t, s.ids(), idsOf(slices.Concat(batches...)))
}

// TestI3OneOfAnObjectAtATime: in a collision of two writers, a change of an object never overtakes the one before it.
func TestI3OneOfAnObjectAtATime(t *testing.T) {
	batch := []sink.Message{
		{ID: "c/pods/a/x/u/1/added"}, {ID: "c/pods/a/y/u/2/added"}, {ID: "c/pods/a/x/u2/3/updated"}, {ID: "c/pods/a/x/u2/4/deleted"},
		{ID: "c/services/a/x/u/5/added"}, {ID: "other"}, {ID: "c/pods/a/y/u/6/deleted"},
	}
	p := publisher{Sink: &Sink{tuning: defaultTuning()}, batch: batch, last: map[string]int{}}
	for _, step := range []struct{ acked, sent int }{{0, 0}, {1, 3}, {2, 3}, {3, 7}} {
		for p.acked = step.acked; p.sent < len(batch) && p.admits(p.sent); {
			p.last[batch[p.sent].Object()] = p.sent
			p.sent++
		}
		if want := max(step.sent, step.acked+1); p.sent != want && !(step.acked == 0 && p.sent == 1) {
			t.Fatalf("with %d acknowledged, %d were sent, want %d", step.acked, p.sent, want)
		}
	}
}

func TestI6WindowIsBoundedByBytes(t *testing.T) {
	s, publisher := opened(t)
	publisher.tuning.bytes = 3 << 10
	batch := benchBatch(1<<10, 50, new(int))[:50]
	batch[7].Value = make([]byte, 100<<10) // more than the window: alone
	write(t, publisher, batch)
	wantIDs(t, s.ids(), idsOf(batch))
}

// TestI7CancelledInAFullSocket: the other end takes nothing any more, and the client library is blocked in a write.
func TestI7CancelledInAFullSocket(t *testing.T) {
	s := startServer(t, func(o *server.Options) { o.MaxPayload = 40 << 20 })
	network := startProxy(t, s.Addr().String())
	options := s.options()
	options.URL = network.url()
	publisher := newSink(t, options)
	publisher.tuning.Reply, publisher.tuning.Flush = time.Hour, time.Hour // so that only the context ends the Write
	openAt(t, publisher, "")
	resume := network.stall()
	defer resume()
	huge := newMaker().Batch(1)
	huge[0].Value = make([]byte, 30<<20) // more than all buffers on the way
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	returned := make(chan error, 1)
	go func() {
		_, err := publisher.Write(ctx, huge)
		returned <- err
	}()
	select {
	case err := <-returned:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v, want %v", err, context.DeadlineExceeded)
		}
	case <-within(t).Done():
		resume()
		t.Fatalf("Write does not notice the end of its context: %v", <-returned)
	}
}

// TestI3SilentConnection answers nothing and is not closed, as when a machine on the way forgot it.
func TestI3SilentConnection(t *testing.T) {
	s, network, options := proxied(t)
	var resume func()
	var reasons []string
	options.Retry = func(reason string, _ error) {
		if resume == nil {
			return // Open tries again on a busy machine
		}
		reasons = append(reasons, reason)
		if len(reasons) == 3 {
			resume()
		}
	}
	publisher := newSink(t, options)
	const short = 300 * time.Millisecond
	publisher.tuning.Reply, publisher.tuning.Outage, publisher.tuning.Dial = short, short, short
	openAt(t, publisher, "")
	resume = network.stall()
	defer resume()
	batch := newMaker().Batch(100)
	write(t, publisher, batch)
	wantIDs(t, s.ids(), idsOf(batch))
	if reasons[0] != "timeout" {
		t.Fatalf("got reasons %q", reasons)
	}
}

// TestI3LateCopy arrives when its message was sent again, on another connection, and acknowledged.
func TestI3LateCopy(t *testing.T) {
	s, network, options := proxied(t)
	publisher := newSink(t, options)
	publisher.tuning.Reply = 300 * time.Millisecond
	openAt(t, publisher, "")
	maker := newMaker()
	want := maker.Batch(3)
	write(t, publisher, want)

	network.hold()
	batch := maker.Batch(50)
	write(t, publisher, batch)
	want = append(want, batch...)
	network.release(t)
	batch = maker.Batch(3)
	write(t, publisher, batch)
	wantIDs(t, s.ids(), idsOf(append(want, batch...)))
}

// TestI4GoneMessagesAreProvenOrSentAgain: consumers, limits and people take messages away before settle reads them.
func TestI4GoneMessagesAreProvenOrSentAgain(t *testing.T) {
	rest := newMaker().Batch(4)
	at := func(i int) entry { return entry{seq: uint64(i + 1), id: rest[i].ID, subject: rest[i].Destination} }
	gone := entry{gone: true}
	for _, test := range []struct {
		entries []entry
		want    int
	}{
		{nil, 0},
		{[]entry{at(0), at(1)}, 2},
		{[]entry{gone, at(1), gone, at(3)}, 4},
		{[]entry{at(0), gone, gone}, 1},
		{[]entry{gone, gone, gone, gone}, 0},
	} {
		if n, err := new(knownStream).prefix(test.entries, rest); n != test.want || err != nil {
			t.Errorf("%v: got %d and %v, want %d", test.entries, n, err, test.want)
		}
	}
	for _, entries := range [][]entry{{at(1)}, {{seq: 1, id: rest[0].ID, subject: "k8s.other"}}, {at(0), {seq: 2, id: "x"}}, {at(0), at(1), at(2), at(3), {seq: 5}}, {gone, gone, gone, gone, gone}} {
		if _, err := new(knownStream).prefix(entries, rest); err == nil {
			t.Errorf("%v: want an error", entries)
		}
	}
}

// TestI1WhatWasReplacedWasThere: where a newer message of a subject replaces the older one, one that is gone is proven
// only by one of its own subject. Else it was somebody else's, and ours was refused: a later one of ours replaced it.
func TestI1WhatWasReplacedWasThere(t *testing.T) {
	rest := keyed(0, 3)
	at := func(i int) entry { return entry{seq: uint64(i + 1), id: rest[i].ID, subject: rest[i].Destination} }
	gone, bucket := entry{gone: true}, knownStream{replaces: true}
	newer := entry{seq: 3, id: rest[2].ID, subject: rest[2].Destination}
	if n, err := bucket.prefix([]entry{gone, at(1)}, rest); err == nil {
		t.Errorf("%d are taken for stored, and the first was refused", n)
	}
	rest[2].Destination, newer.subject = rest[0].Destination, rest[0].Destination
	if n, err := bucket.prefix([]entry{gone, at(1), newer}, rest); n != 3 || err != nil {
		t.Errorf("got %d and %v, want 3: the third has replaced the first", n, err)
	}
}

func TestWriteToASinkThatIsNotOpen(t *testing.T) {
	s := newSink(t, Options{URL: "nats://h:4222", Stream: testStream, Subjects: []string{"k8s.>"}})
	_, err := s.Write(t.Context(), nil)
	wantError(t, err, "write to stream K8S: the sink is not open: open it")
}

// TestI7LoginTakenAway ends the run instead of trying for ever.
func TestI7LoginTakenAway(t *testing.T) {
	s := startServer(t, func(o *server.Options) { o.Username, o.Password = "u", "p" })
	options := s.options()
	options.User, options.Password = "u", "p"
	publisher := openSink(t, options)
	s.Options.Password = "changed"
	s.Restart(t)
	_, err := publisher.Write(within(t), newMaker().Batch(1))
	wantError(t, err, "connect to "+options.URL+
		": authorization violation: check user, password, token, nkey or credentials file of the sink")
}
