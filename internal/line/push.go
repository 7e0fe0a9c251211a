package line

import (
	"context"
	"fmt"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// Push puts the record in line and gives it its Seq. It blocks while a queue that wants the record is full, or too much
// is not saved yet, and returns ctx's error if ctx ends first; the record is then in no queue. Records of one stream
// must be pushed by one goroutine at a time, in their order (I3).
func (l *Line) Push(ctx context.Context, rec *change.Record) error {
	// Once a record was refused, none of its stream may follow: room may have come since, and the position would pass
	// over the one that is missing (I2).
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	own := l.own(rec)
	wanted := l.wanted(rec, own)
	if err := l.admit(ctx, rec, wanted, own); err != nil {
		return err
	}
	if err := l.await(ctx, func() bool { return l.window.reserve(rec, l.isStuck) }); err != nil {
		return err
	}
	refused := reserve(ctx, l.seats, rec, wanted)
	l.mu.Lock()
	defer l.mu.Unlock()
	if refused != nil {
		l.window.leave(rec)
		return refused
	}
	l.number.Number(rec)
	l.Images.note(rec)
	given, missing, err := l.streams.add(rec, wanted, own)
	if err != nil {
		return err
	}
	wake, err := hand(l.seats, &l.streams, rec, audience{given, missing})
	switch {
	case err != nil:
		return err
	case wake:
		l.Wake()
	case rec.Op == change.Bookmark:
		signal(l.moved)
	}
	return nil
}

// wanted is the set of listeners that must write the record, as a bit mask. What a user does not want, and a
// bookmark, move the position and are nobody's.
func (l *Line) wanted(rec *change.Record, own uint64) (mask uint64) {
	if rec.Op == change.Bookmark || rec.Filtered {
		return 0
	}
	for _, s := range l.seats {
		if s.wants(rec) {
			mask |= s.bit()
		}
	}
	if mask != 0 && l.anyAway.Load() {
		l.mu.Lock()
		defer l.mu.Unlock()
		mask &^= l.streams.missing(rec, own)
	}
	return mask
}

// own is the bit of the sink that the record is for alone, 0 where it is for all.
func (l *Line) own(rec *change.Record) uint64 {
	if rec.Sink == "" {
		return 0
	}
	for _, s := range l.seats {
		if s.Name == rec.Sink {
			return s.bit()
		}
	}
	return 0
}

// audience are the listeners that a record is handed to, and those that have left since room was reserved for it, as
// bit masks.
type audience struct{ given, missing uint64 }

// hand queues the record for the listeners that are to have it, and says whether the committer has work. The caller
// holds the line's mu.
//
// Records that the record has made superfluous for a listener, whose sink will never be given them, are acknowledged.
// That is early, and right: the newer one is in line and not acknowledged, so that the position stays before it, and a
// crash brings it again.
func hand(seats []*seat, of *streams, rec *change.Record, to audience) (wake bool, err error) {
	wake = to.given == 0 && rec.Op != change.Bookmark
	for _, s := range seats {
		if to.missing&s.bit() != 0 {
			s.Queue.Cancel(rec.Size())
		}
		superfluous, works := s.Queue.Enter(rec, to.given&s.bit() != 0)
		if _, err := of.settle(s.index, superfluous, (*checkpoint.Tracker).Spare); err != nil {
			return false, fmt.Errorf("leave a record out: %w", err)
		}
		wake = wake || works
	}
	return wake, nil
}
