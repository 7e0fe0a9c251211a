package listener

import (
	"context"
	"errors"
	"fmt"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
)

// Run opens the sink, and delivers until there is nothing more or ctx ends. It returns nil then, and an error only if
// no retry helps. It tries to open the sink for as long as opening lives.
func (l *Listener) Run(opening, ctx context.Context) error {
	ctx, cut := context.WithCancel(ctx)
	defer cut()
	for {
		if err := l.openAnew(opening); err != nil {
			if opening.Err() != nil && IsEnd(err) == nil {
				return nil
			}
			return err
		}
		l.use(func(*fifo.Backlog) { l.cut = cut })
		err := l.deliverAll(ctx)
		l.use(func(*fifo.Backlog) { l.cut = nil })
		switch {
		case errors.Is(err, errAnew):
		case err == nil || ctx.Err() != nil:
			return nil
		default:
			return l.ended(err)
		}
		if l.leave(); opening.Err() != nil {
			return nil
		}
	}
}

// ended names the sink in the error that ends the run.
func (l *Listener) ended(err error) error {
	var end *endError
	if errors.As(err, &end) || IsPermanent(err) { // says so
		return err
	}
	return fmt.Errorf("deliver to sink %s: %w", l.Name, err)
}

func (l *Listener) deliverAll(ctx context.Context) error {
	var batch []*change.Record
	for {
		var err error
		if batch, err = l.take(ctx, batch); err != nil || len(batch) == 0 {
			return err
		}
		l.taken, l.done, l.heldTo = batch, 0, 0
		if err := l.deliver(ctx, batch); err != nil {
			return err
		}
		l.taken = nil
		clear(batch) // so that the records can be collected
	}
}

// take returns the next batch, and waits only while there is nothing, or too much is unsaved: a busy sink gets large
// batches, an idle one a batch of one at once. It returns nothing when the queue is empty for good: what is on disk
// then is for the next process.
func (l *Listener) take(ctx context.Context, batch []*change.Record) ([]*change.Record, error) {
	for {
		var turn fifo.Turn
		l.use(func(b *fifo.Backlog) {
			if l.ledger.size < maxUnsaved {
				turn, batch = b.Take(batch)
			}
		})
		switch turn {
		case fifo.Over:
			return nil, nil
		case fifo.Memory:
			return batch, nil
		case fifo.Disk:
			if records, err := l.takeSpooled(ctx); err != nil || len(records) > 0 {
				return records, err
			}
			continue // the log has all of it
		}
		if more, err := l.deleteLeft(); err != nil {
			return nil, err
		} else if more {
			continue
		}
		select {
		case <-l.ready:
		case <-ctx.Done():
			return nil, nil
		}
	}
}

// deliver writes the whole batch to the sink, however many attempts it takes. A replay is written alone: what it is
// worth is decided when all before it is written, and nothing after it.
func (l *Listener) deliver(ctx context.Context, batch []*change.Record) error {
	for at := 0; at < len(batch); at++ {
		end := at
		for end < len(batch) && batch[end].Replay == nil {
			end++
		}
		todo, err := l.prepare(ctx, at, batch[at:end])
		for err == nil && len(todo) > 0 {
			if todo, err = l.write(ctx, todo); err == nil {
				todo, err = l.skipRetried(ctx, todo)
			}
		}
		if err != nil {
			return err
		}
		l.acknowledge(end)
		if at = end; at < len(batch) {
			if err := l.deliverReplay(ctx, at, batch[at]); err != nil {
				return err
			}
			l.acknowledge(at + 1)
		}
	}
	return nil
}
