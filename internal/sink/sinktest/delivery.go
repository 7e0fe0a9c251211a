package sinktest

import (
	"math/rand/v2"

	"github.com/kubecdc/kubecdc/internal/sink"
)

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
