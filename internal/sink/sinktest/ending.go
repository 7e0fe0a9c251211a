package sinktest

import (
	"context"
	"math/rand/v2"
	"time"

	"go.uber.org/goleak"
)

// cancelledBefore takes an error or success for an answer, since some sinks have nothing to wait for; but no other
// error, no hang, and no doubt about what was written.
func cancelledBefore(r *rig) {
	l := r.newLine()
	l.deliver(r.maker.Batch(3))
	ended, cancel := context.WithCancel(r.ctx)
	cancel()
	r.endsWith(ended, func() error { return l.hand(ended, r.maker.Batch(3)) })
	r.endsWith(ended, func() error {
		_, err := Open(ended, l.sink, l.saved)
		return err
	})
	l.restart(l.close)
	l.check(l.all)
}

func cancelledDuring(r *rig) {
	l := r.newLine()
	for range 25 {
		ctx, cancel := context.WithTimeout(r.ctx, rand.N(3*time.Millisecond))
		var err error
		r.endsWith(ctx, func() error {
			err = l.hand(ctx, r.maker.Batch(30))
			return err
		})
		cancel()
		if err != nil {
			l.restart(l.close)
		}
		l.save()
	}
	l.check(l.all)
}

func closing(r *rig) {
	s := r.newSink()
	r.close(s) // never opened
	r.close(s)
	r.open(s, "")
	batch := r.maker.Batch(3)
	before := r.write(s, nil)
	mark := r.write(s, batch)
	r.close(s)
	r.close(s)
	r.same(r.open(s, before), batch)
	r.close(s)
	r.same(r.open(s, mark), nil)
	more := r.maker.Batch(3)
	r.write(s, more)
	r.close(s)
	r.check(append(batch, more...))
}

// leaks lets one sink live and die first, so that what a server in this process starts for good is there already.
func leaks(r *rig) {
	first, _ := r.opened("")
	mark := r.write(first, r.maker.Batch(3))
	r.close(first)
	ignore := append([]goleak.Option{goleak.IgnoreCurrent()}, r.env.Leaks...)

	s, _ := r.opened(mark)
	mark = r.write(s, r.maker.Batch(3))
	r.open(s, mark) // what the first Open started is not forgotten by the second
	if r.env.Cut != nil {
		r.env.Cut()
	}
	r.close(s)
	ended, cancel := context.WithCancel(r.ctx)
	cancel()
	if _, err := Open(ended, s, mark); err == nil {
		r.close(s)
	}
	limit, stop := context.WithTimeout(r.ctx, r.prompt)
	defer stop()
	err := goleak.Find(ignore...)
	for err != nil && limit.Err() == nil { // a goroutine that ends takes a while on a busy machine
		err = goleak.Find(ignore...)
	}
	if err != nil {
		r.Fatalf("after Close: %v", err)
	}
}
