package sinktest

import (
	"context"
	"errors"
	"slices"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// line does with a sink what the pipeline does: it writes, keeps a mark that may lag behind, and answers every error
// and every crash by opening at that mark and writing what the log does not hold yet.
type line struct {
	*rig
	sink  sink.Sink
	saved sink.Mark      // what a checkpoint holds
	after []sink.Message // what was handed over after saved
	acked int            // how many of after are known to be durable
	last  sink.Mark      // the place after all of after, if acked is all of it
	all   []sink.Message // what was handed over since the beginning
}

// newLine opens a new sink on the empty log and takes its first mark, so that a crash in the first batch is covered.
func (r *rig) newLine() *line {
	r.Helper()
	s, _ := r.opened("")
	mark := r.write(s, nil)
	return &line{rig: r, sink: s, saved: mark, last: mark}
}

// hand writes a batch under the context, and returns what Write returned.
func (l *line) hand(ctx context.Context, batch []sink.Message) error {
	l.after = append(l.after, batch...)
	l.all = append(l.all, batch...)
	mark, err := writeCopy(ctx, l.sink, batch)
	if err == nil {
		l.acked, l.last = len(l.after), mark
	}
	return err
}

// deliver writes a batch and does not rest until the sink acknowledged all of it.
func (l *line) deliver(batch []sink.Message) {
	l.Helper()
	if err := l.hand(l.ctx, batch); err != nil {
		l.transient(err)
		l.recover(l.sink)
	}
}

// recover opens the sink at the saved mark and writes what is missing, again and again until nothing is.
func (l *line) recover(s sink.Sink) {
	l.Helper()
	for l.sink = s; ; {
		ids, err := Open(l.ctx, s, l.saved)
		if err != nil {
			l.transient(err)
			continue
		}
		rest := l.undelivered(ids, l.after)
		l.holdsAcked(rest)
		mark, err := writeCopy(l.ctx, s, rest)
		if err == nil {
			l.acked, l.last = len(l.after), mark
			return
		}
		l.transient(err)
	}
}

// holdsAcked is I1: what Write once acknowledged is in the log for ever.
func (l *line) holdsAcked(rest []sink.Message) {
	l.Helper()
	for i := range rest {
		sameID := func(m sink.Message) bool { return m.ID == rest[i].ID }
		if at := slices.IndexFunc(l.after, sameID); at < l.acked {
			l.Fatalf("%s was acknowledged, and Open at a mark before it does not find it", rest[i].ID)
		}
	}
}

// transient fails on an error that opening again does not mend, the end of the case's patience among them.
func (l *line) transient(err error) {
	l.Helper()
	var permanent *sink.PermanentError
	var rejected *sink.RejectedError
	var lost *sink.LostError
	if l.ctx.Err() != nil || errors.As(err, &permanent) || errors.As(err, &rejected) || errors.As(err, &lost) {
		l.Fatalf("after %d messages: %v", len(l.all), err)
	}
}

// save is a checkpoint.
func (l *line) save() {
	l.saved, l.after, l.acked = l.last, nil, 0
}

// restart ends the sink's process, with or without warning, and starts another one.
func (l *line) restart(end func(sink.Sink)) {
	l.Helper()
	end(l.sink)
	l.recover(l.newSink())
}
