package sinktest

import (
	"errors"
	"testing"

	"github.com/kubecdc/kubecdc/internal/sink"
)

func truncated(r *rig) { r.lost(r.env.Truncate, false) }

func recreated(r *rig) { r.lost(r.env.Recreate, false) }

func truncatedWhileOpen(r *rig) { r.lost(r.env.Truncate, true) }

func recreatedWhileOpen(r *rig) { r.lost(r.env.Recreate, true) }

// lost is I4: a log that ends before the mark is told, and the sink goes on at the log's end.
func (r *rig) lost(fault func(*testing.T), whileOpen bool) {
	r.Helper()
	s, _ := r.opened("")
	r.write(s, nil)
	var written []sink.Message
	var mark sink.Mark
	for range 3 {
		batch := r.maker.Batch(10)
		written = append(written, batch...)
		mark = r.write(s, batch)
	}
	if whileOpen {
		fault(r.T)
		r.seesLoss(s)
	} else {
		r.close(s)
		fault(r.T)
		s = r.newSink()
	}
	left := survivors(r, written)
	r.opensLost(s, mark)
	r.goesOn(s, left)
}

func (r *rig) seesLoss(s sink.Sink) {
	r.Helper()
	var permanent *sink.PermanentError
	_, err := writeCopy(r.ctx, s, r.maker.Batch(1))
	if err == nil {
		r.Fatal("Write to a log that lost what it held returned nil")
	}
	if errors.As(err, &permanent) || r.ctx.Err() != nil {
		r.Fatalf("Write: got %v, want an error that Open answers", err)
	}
}

func (r *rig) opensLost(s sink.Sink, mark sink.Mark) {
	r.Helper()
	ids, err := Open(r.ctx, s, mark)
	var lost *sink.LostError
	if !errors.As(err, &lost) {
		r.Fatalf("Open at %q, which is gone: got %v, want a LostError", mark, err)
	}
	if lost.Log == "" || lost.Want == "" || lost.Have == "" || len(ids) > 0 {
		r.Fatalf("got %+v and ids %q, want every field set and no ids", lost, ids)
	}
}

func (r *rig) goesOn(s sink.Sink, left []sink.Message) {
	r.Helper()
	before := r.write(s, nil)
	batch := r.maker.Batch(15)
	mark := r.write(s, batch)
	r.check(append(left, batch...))
	r.close(s)
	again, ids := r.opened(before)
	r.same(ids, batch)
	r.close(again)
	_, ids = r.opened(mark)
	r.same(ids, nil)
}

// survivors is what the fault left of what was written.
func survivors(r *rig, written []sink.Message) []sink.Message {
	r.Helper()
	kept := map[string]bool{}
	for _, stored := range r.env.Messages(r.T) {
		kept[stored.ID] = true
	}
	var left []sink.Message
	for i := range written {
		if kept[written[i].ID] {
			left = append(left, written[i])
		}
	}
	if len(left) == len(written) {
		r.Fatal("the fault of the environment lost nothing")
	}
	return left
}
