package sinktest

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// Harness makes environments.
type Harness struct {
	// New returns an empty log of its own for one test, and leaves its end to t.Cleanup.
	New func(t *testing.T) *Env
}

// Run tries a sink against the contract. Each case has an environment of its own and is named after what it holds.
func Run(t *testing.T, h Harness) {
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, h.New(t))
			if c.needs != nil && !c.needs(r.env) {
				t.Skip("the log has no such fault")
			}
			c.run(r)
		})
	}
}

// testCase is one promise of the contract.
type testCase struct {
	name  string
	needs func(*Env) bool // nil: nothing
	run   func(*rig)
}

func cases() []testCase {
	return []testCase{
		{"I1 durable before Write returns", nil, durable},
		{"I3 order over many batches", nil, order},
		{"I3 messages of every shape", nil, shapes},
		{"batch of none tells the place", nil, emptyBatch},
		{"empty mark leaves alone what is there", nil, emptyMark},
		{"I1 Open returns what follows the mark", nil, openAtMark},
		{"I3 crash and go on behind", nil, crashAndGoOn},
		{"I3 crash in the first batch", nil, crashInFirstBatch},
		{"I3 random histories", nil, histories},
		{"I4 rejection names the message", func(e *Env) bool { return e.TooLarge > 0 }, rejection},
		{"I3 cut connections", func(e *Env) bool { return e.Cut != nil }, cutConnections},
		{"I3 pairs are whole", func(e *Env) bool { return e.Pairs }, pairs},
		{"I1 stalled transport", func(e *Env) bool { return e.Stall != nil }, stalled},
		{"I7 cancelled before", nil, cancelledBefore},
		{"I7 cancelled during Write", nil, cancelledDuring},
		{"I7 Close", nil, closing},
		{"I7 no goroutine is left", nil, leaks},
		{"I4 truncated log", func(e *Env) bool { return e.Truncate != nil }, func(r *rig) { r.lost(r.env.Truncate, false) }},
		{"I4 log made again", func(e *Env) bool { return e.Recreate != nil }, func(r *rig) { r.lost(r.env.Recreate, false) }},
		{"I4 log truncated while open", func(e *Env) bool { return e.Truncate != nil }, func(r *rig) { r.lost(r.env.Truncate, true) }},
		{"I4 log made again while open", func(e *Env) bool { return e.Recreate != nil }, func(r *rig) { r.lost(r.env.Recreate, true) }},
		{"I10 one of two writers", nil, oneWriter},
	}
}

func durable(r *rig) {
	s, _ := r.opened("")
	var want []sink.Message
	for _, n := range []int{1, 3, 1, 40} {
		batch := r.maker.Batch(n)
		want = append(want, batch...)
		r.write(s, batch)
		r.check(want) // with the sink still open: nothing waits for its end
	}
}

func order(r *rig) {
	s, _ := r.opened("")
	var want []sink.Message
	for i := range 60 {
		batch := r.maker.Batch(1 + i*i%50)
		want = append(want, batch...)
		r.write(s, batch)
	}
	batch := r.maker.Batch(2000)
	r.write(s, batch)
	r.check(append(want, batch...))
}

func shapes(r *rig) {
	largest := r.env.MaxValue
	if largest == 0 {
		largest = 1 << 20
	}
	s, _ := r.opened("")
	before := r.write(s, nil)
	want := []sink.Message{
		r.maker.Message(0), r.maker.Tombstone(), r.maker.Message(largest), r.maker.Message(10_000), r.maker.Tombstone(),
	}
	r.write(s, want)
	alone := []sink.Message{r.maker.Tombstone()}
	r.write(s, alone)
	want = append(append(want, alone...), r.maker.Message(largest/2))
	r.write(s, want[len(want)-1:])
	r.check(want)
	r.close(s)
	_, ids := r.opened(before)
	r.same(ids, want)
}

// emptyBatch is how the pipeline learns the place of a sink before the first message.
func emptyBatch(r *rig) {
	s, _ := r.opened("")
	marks := []sink.Mark{r.write(s, nil)}
	batch := r.maker.Batch(5)
	marks = append(marks, r.write(s, batch), r.write(s, []sink.Message{}))
	r.close(s)
	for i, want := range [][]sink.Message{batch, nil, nil} {
		again, ids := r.opened(marks[i])
		r.same(ids, want)
		r.close(again)
	}
	r.check(batch)
}

func emptyMark(r *rig) {
	if r.env.Foreign != nil {
		r.env.Foreign(r.T)
	}
	foreign := r.env.Messages(r.T)
	earlier, _ := r.opened("")
	want := r.maker.Batch(10)
	r.write(earlier, want)
	r.close(earlier)

	s, _ := r.opened("") // fails if anything comes back
	mark := r.write(s, nil)
	batch := r.maker.Batch(10)
	r.write(s, batch)
	if left := r.check(append(want, batch...)); len(left) != len(foreign) {
		r.Fatalf("the log held %d foreign messages and holds %d now", len(foreign), len(left))
	}
	r.close(s)
	_, ids := r.opened(mark)
	r.same(ids, batch)
}

func openAtMark(r *rig) {
	s, _ := r.opened("")
	marks := []sink.Mark{r.write(s, nil)}
	starts, want := []int{0}, []sink.Message{}
	for _, n := range []int{1, 7, 1, 100, 2} {
		batch := r.maker.Batch(n)
		want = append(want, batch...)
		marks = append(marks, r.write(s, batch))
		starts = append(starts, len(want))
	}
	r.same(r.open(s, marks[1]), want[starts[1]:]) // without Close: the answer to an error of Write
	r.close(s)
	for i := range marks {
		again, ids := r.opened(marks[i])
		r.same(ids, want[starts[i]:])
		r.close(again)
	}
	r.check(want)
}

func crashAndGoOn(r *rig) {
	l := r.newLine()
	for range 5 {
		l.deliver(r.maker.Batch(4))
		l.save()
		l.deliver(r.maker.Batch(3))
		l.deliver(r.maker.Batch(1))
		l.restart(l.crash) // and a second time at the same mark, as in a crash loop
		l.restart(l.crash)
	}
	l.check(l.all)
}

func crashInFirstBatch(r *rig) {
	l := r.newLine()
	l.deliver(r.maker.Batch(4))
	l.restart(l.crash)
	l.deliver(r.maker.Batch(4))
	l.check(l.all)
}

// histories lets chance find the order of events that the other cases do not have.
func histories(r *rig) {
	const seed = 20261121
	dice := rand.New(rand.NewPCG(seed, 0))
	l := r.newLine()
	for range 150 {
		switch p := dice.IntN(100); {
		case p < 60:
			l.deliver(r.maker.Batch(dice.IntN(12)))
		case p < 65:
			l.deliver([]sink.Message{r.maker.Tombstone(), r.maker.Message(dice.IntN(100_000)), r.maker.Tombstone()})
		case p < 80:
			l.save()
		case p < 88:
			l.restart(l.crash)
		case p < 94:
			l.restart(l.close)
		case p < 97:
			l.recover(l.sink)
		case l.env.Cut != nil:
			l.env.Cut()
		}
	}
	l.check(l.all)
}

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
