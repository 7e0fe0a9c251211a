package sinktest

import (
	"context"
	"errors"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// pairs tries records of two messages with everything that ends a Write in the middle.
func pairs(r *rig) {
	l := r.newLine()
	for i := range 30 {
		if i%3 == 1 && r.env.Cut != nil {
			r.env.Cut()
		}
		l.deliver(r.maker.Pairs(1 + i%7))
		switch i % 10 {
		case 2, 6:
			l.save()
		case 4:
			l.restart(l.crash)
		case 8:
			l.recover(l.sink)
		}
	}
	l.check(l.all)
	if r.env.Cut != nil {
		l.cutWhile(20, func() []sink.Message { return r.maker.Pairs(5) })
	}
	l.brokenOff()
	l.check(l.all)
	if r.env.TooLarge > 0 {
		l.rejectedPair()
	}
}

// brokenOff ends the process while it writes, sooner or later.
func (l *line) brokenOff() {
	l.Helper()
	for range 10 {
		ctx, cancel := context.WithCancel(l.ctx)
		ended := make(chan struct{})
		go func() { defer close(ended); cancel() }()
		if err := l.hand(ctx, l.maker.Pairs(20)); err != nil && !errors.Is(err, context.Canceled) {
			l.transient(err)
		}
		<-ended
		l.restart(l.crash)
	}
}

// rejectedPair is a record whose first message is too large: neither of its messages is written.
func (l *line) rejectedPair() {
	l.Helper()
	before := l.maker.Pairs(1)
	large := l.maker.Message(l.env.TooLarge)
	second := large
	second.Value = nil
	batch := append(append(before[:3:3], large, second), l.maker.Pairs(1)...)
	l.rejected(l.sink, batch, 3)
	l.all = append(l.all, before...)
	l.check(l.all)
}
