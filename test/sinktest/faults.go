package sinktest

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/kubecdc/kubecdc/internal/sink"
)

func rejection(r *rig) {
	s, _ := r.opened("")
	before := r.write(s, nil)
	batch := append(r.maker.Batch(2), r.maker.Message(r.env.TooLarge))
	batch = append(batch, r.maker.Batch(2)...)
	after := r.rejected(s, batch, 2)
	want := batch[:2:2]
	r.check(want)

	// It goes on without being opened, and a rejection at the front is no other case.
	first := append([]sink.Message{r.maker.Message(r.env.TooLarge)}, r.maker.Batch(1)...)
	r.rejected(s, first, 0)
	r.check(want)
	r.write(s, batch[3:])
	want = append(want, batch[3:]...)
	r.check(want)
	r.close(s)

	again, ids := r.opened(before)
	r.same(ids, want)
	r.close(again)
	_, ids = r.opened(after)
	r.same(ids, want[2:])
}

func (r *rig) rejected(s sink.Sink, batch []sink.Message, index int) sink.Mark {
	r.Helper()
	mark, err := writeCopy(r.ctx, s, batch)
	var rejected *sink.RejectedError
	if !errors.As(err, &rejected) {
		r.Fatalf("Write of a value of %d bytes: got %v, want a RejectedError", r.env.TooLarge, err)
	}
	if rejected.Index != index || rejected.Reason == "" || rejected.Err == nil {
		r.Fatalf("got %+v, want index %d with a reason and a cause", rejected, index)
	}
	if mark == "" {
		r.Fatal("a rejection returned the empty mark")
	}
	return mark
}

// cutConnections writes until enough cuts fell on it.
func cutConnections(r *rig) {
	l := r.newLine()
	l.cutWhile(20, func() []sink.Message { return r.maker.Batch(10) })
}

// cutWhile writes batches until so many cuts fell on them.
func (l *line) cutWhile(times int, batch func() []sink.Message) {
	l.Helper()
	cuts := make(chan struct{})
	ctx, stop := context.WithCancel(l.ctx)
	defer stop()
	go cutting(ctx, l.env.Cut, cuts)
	for n := 0; n < times; {
		l.deliver(batch())
		select {
		case <-cuts:
			l.save()
			n++
		default:
		}
	}
	stop()
	for range cuts {
		continue // until the goroutine is gone
	}
	l.check(l.all)
}

func cutting(ctx context.Context, cut func(), cuts chan<- struct{}) {
	defer close(cuts)
	for {
		timer := time.NewTimer(rand.N(100 * time.Millisecond))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		cut()
		select {
		case <-ctx.Done():
			return
		case cuts <- struct{}{}:
		}
	}
}

// stalled tries both ends of an outage: the one that is over in time, and the one that outlives the context.
func stalled(r *rig) {
	l := r.newLine()
	l.deliver(r.maker.Batch(3))
	l.save()

	resume := r.env.Stall(r.T)
	timer := time.AfterFunc(50*time.Millisecond, resume)
	defer timer.Stop()
	l.deliver(r.maker.Batch(3))
	l.check(l.all)

	resume = r.env.Stall(r.T)
	ctx, cancel := context.WithTimeout(r.ctx, 100*time.Millisecond)
	defer cancel()
	r.endsWith(ctx, func() error {
		err := l.hand(ctx, r.maker.Batch(3))
		if err == nil {
			r.Error("Write returned nil while the transport took nothing")
		}
		return err
	})
	short, cancelShort := context.WithTimeout(r.ctx, 100*time.Millisecond)
	defer cancelShort()
	r.endsWith(short, func() error {
		_, err := Open(short, l.sink, l.saved)
		return err // or none: a full disk can still be opened
	})
	resume()
	l.restart(l.close)
	l.deliver(r.maker.Batch(3))
	l.check(l.all)
}

// endsWith fails unless the call returns soon after the context's end, and returns nothing but the context's error.
func (r *rig) endsWith(ctx context.Context, call func() error) {
	r.Helper()
	returned := make(chan error, 1)
	go func() { returned <- call() }()
	var err error
	select {
	case err = <-returned:
	case <-ctx.Done():
		timer := time.NewTimer(r.prompt)
		defer timer.Stop()
		select {
		case err = <-returned:
		case <-timer.C:
			r.Fatalf("did not return within %s after the end of its context", r.prompt)
		}
	}
	if err != nil && (ctx.Err() == nil || !errors.Is(err, ctx.Err())) {
		r.Fatalf("got %v, want the error of the context, %v", err, ctx.Err())
	}
}

// oneWriter is I10: an older process that does not know it is dead, and its successor.
func oneWriter(r *rig) {
	older, _ := r.opened("")
	want := r.maker.Batch(3)
	mark := r.write(older, want)

	younger := r.newSink()
	ctx, cancel := context.WithTimeout(r.ctx, r.prompt)
	defer cancel()
	if _, err := Open(ctx, younger, mark); err != nil {
		batch := r.maker.Batch(3) // the older one is the owner, and undisturbed
		r.write(older, batch)
		r.check(append(want, batch...))
		return
	}
	batch := r.maker.Batch(1)
	r.write(younger, batch)
	want = append(want, batch...)
	// More than one: where places in the log are numbered, those of all but the first are free.
	if _, err := writeCopy(ctx, older, r.maker.Batch(50)); err == nil {
		r.Fatal("two sinks write to one log, and neither is kept out")
	}
	batch = r.maker.Batch(3)
	r.write(younger, batch)
	r.check(append(want, batch...))
}
