package delivery

import (
	"context"
	"errors"
	"fmt"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/line"
)

// Run delivers until there is nothing more or ctx ends. It returns nil then, and an error only where no retry helps.
func (l *Listener) Run(ctx context.Context) error {
	ctx, cut := context.WithCancel(ctx)
	defer cut()
	l.use(func(*fifo.Backlog) { l.cut = cut })
	var batch []*change.Record
	for {
		var err error
		if batch, err = l.take(ctx, batch); err == nil && len(batch) == 0 {
			return nil
		}
		if err == nil {
			err = l.deliver(ctx, batch)
		}
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return l.ended(err)
		}
		clear(batch) // the records are free
	}
}

// ended says which sink it was that ended the run.
func (l *Listener) ended(err error) error {
	var end *endError
	if errors.As(err, &end) || IsPermanent(err) || errors.Is(err, ErrLeft) { // says so
		return err
	}
	return fmt.Errorf("deliver to sink %s: %w", l.Name, err)
}

// deliver brings the whole batch into the sink, whatever it takes. A replay goes alone: what it is worth is decided
// when all before it is written, and nothing after it.
func (l *Listener) deliver(ctx context.Context, batch []*change.Record) error {
	for len(batch) > 0 {
		n := untilReplay(batch)
		if err := l.deliverPlain(ctx, batch[:n]); err != nil {
			return err
		}
		if batch = batch[n:]; len(batch) > 0 {
			if err := l.deliverReplay(ctx, batch[0]); err != nil {
				return err
			}
			batch = batch[1:]
		}
	}
	return nil
}

// untilReplay is how many records of the batch come before the first replay.
func untilReplay(batch []*change.Record) int {
	for i, rec := range batch {
		if rec.Replay != nil {
			return i
		}
	}
	return len(batch)
}

// deliverPlain brings the whole batch, in which no replay is, into the sink, whatever it takes. Each record is compared
// once with what an earlier process left in the sink's log, and after a failed write with what that has left there.
func (l *Listener) deliverPlain(ctx context.Context, batch []*change.Record) error {
	l.readAnew, l.given = false, batch
	defer func() { l.given, l.rest = nil, nil }()
	l.Recovery.With(func(r *line.Recovery) { r.Undeleted.Taken(batch) })
	batch, err := l.skipDelivered(batch)
	if err == nil {
		batch, err = l.tellMissed(batch)
	}
	if err == nil {
		batch, err = l.narrow(batch)
	}
	if err == nil {
		err = l.replaceWithheld(ctx, batch)
	}
	for err == nil && len(batch) > 0 {
		if batch, err = l.write(ctx, batch); err == nil {
			batch, err = l.skipRetried(batch)
		}
		if err == nil && l.readAnew {
			batch, err = l.compareAgain(batch)
		}
	}
	return err
}

// compareAgain compares the rest of a batch with a log that was read anew while the batch was under way: that may hold
// a part of it, and tells again of objects whose deletes are in the batch (I3). Only what is found to be gone is new,
// and has not the form of this sink yet.
func (l *Listener) compareAgain(rest []*change.Record) ([]*change.Record, error) {
	l.readAnew = false
	compared, err := l.skipDelivered(rest)
	if err != nil {
		return nil, err
	}
	known := make(map[*change.Record]struct{}, len(rest))
	for _, rec := range rest {
		known[rec] = struct{}{}
	}
	batch := make([]*change.Record, 0, len(compared))
	for _, rec := range compared {
		formed := []*change.Record{rec}
		if _, formedBefore := known[rec]; !formedBefore {
			if formed, err = l.narrow(formed); err != nil {
				return nil, err
			}
		}
		batch = append(batch, formed...)
	}
	return batch, nil
}

// take returns what is next, up to the batch limit, and waits only while there is nothing: a busy sink gets large
// batches by itself, an idle one a batch of one at once. It returns nothing when there will be nothing more in the
// queue: what is on disk then is for the next process.
func (l *Listener) take(ctx context.Context, batch []*change.Record) ([]*change.Record, error) {
	for {
		var turn fifo.Turn
		l.use(func(b *fifo.Backlog) { turn, batch = b.Take(batch) })
		switch turn {
		case fifo.Over:
			return nil, nil
		case fifo.Memory:
			return batch, nil
		case fifo.Disk:
			if records, err := l.takeSpooled(); err != nil || len(records) > 0 {
				return records, err
			}
			continue // nothing that the sink still takes
		}
		select {
		case <-l.ready:
		case <-ctx.Done():
			return nil, nil
		}
	}
}
