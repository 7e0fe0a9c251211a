package pipeline

import (
	"context"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/delivery"
	"github.com/kubecdc/kubecdc/internal/line"
)

// committer saves what is delivered. Marks of sinks that open or that leave, and streams that end, are saved elsewhere.
type committer struct {
	line      *line.Line
	listeners []*listener
	store     *checkpoint.Store
	observer  Observer
	// attempt commits a batch, less the marks that a rewind has taken back.
	attempt func(checkpoint.Batch) error
	// leave takes a sink out of the line, which holds up others.
	leave func(*listener) error
	// miss lets a sink miss a stream that its format holds up.
	miss func(*listener, change.Stream) error
}

func (o *owing) newCommitter() *committer {
	return &committer{line: o.line, listeners: o.listeners, store: o.Store, observer: o.Observer, attempt: o.saveBatch, leave: o.leaveLine, miss: o.missStream}
}

// bookmarkWait is how long a bookmark may wait to be saved together with others. Hundreds of quiet streams get one a
// minute each, and what a crash costs is that the watch begins so much earlier.
const bookmarkWait = 2 * time.Second

// run commits until ctx ends; what moved until then is committed before it returns, if the store takes it at once.
func (c *committer) run(ctx context.Context) error {
	var waited <-chan time.Time // nil while no bookmark waits
	work, moved := c.line.Work()
	for {
		select {
		case <-moved:
			if waited == nil {
				waited = time.After(bookmarkWait)
			}
			continue
		case <-work:
		case <-waited:
		case <-ctx.Done():
			return c.commit(ctx)
		}
		waited = nil
		if err := c.commit(ctx); err != nil {
			return err
		}
	}
}

// commit saves everything that may be saved now, in batches that are each whole (I5).
func (c *committer) commit(ctx context.Context) error {
	for _, p := range c.line.Advance() {
		if err := c.save(ctx, p); err != nil {
			return err
		}
	}
	for _, lst := range c.listeners {
		if err := c.part(ctx, lst); err != nil {
			return err
		}
	}
	return nil
}

// part takes the sink out of the line, or out of streams alone, where others would wait for it. It tries as long as ctx
// lives.
func (c *committer) part(ctx context.Context, l *listener) error {
	attempt := func(do func() error) error {
		return backoff.Retry(func() error {
			err := do()
			if err != nil && ctx.Err() == nil {
				c.observer.CommitFailed(err)
			}
			return err
		}, backoff.WithContext(delivery.RetryForever(), ctx))
	}
	if l.IsLeaving() {
		return attempt(func() error { return c.leave(l) })
	}
	for _, stream := range l.Refused() {
		if err := attempt(func() error { return c.miss(l, stream) }); err != nil {
			return err
		}
	}
	return nil
}

// save retries as long as ctx lives: a full disk stops the line, and goes on by itself when there is space.
func (c *committer) save(ctx context.Context, p *line.Batch) error {
	began := time.Now()
	err := c.encode(p)
	if err != nil {
		return err
	}
	batch := c.batchOf(p)
	if p.IsEmpty() && len(batch.Spools) == 0 {
		return nil
	}
	attempt := func() error {
		err = c.attempt(batch)
		if err != nil && ctx.Err() == nil {
			c.observer.CommitFailed(err)
		}
		return err
	}
	if backoff.Retry(attempt, backoff.WithContext(delivery.RetryForever(), ctx)) != nil {
		return fmt.Errorf("save %d delivered records: %w", len(p.Records), err)
	}
	for _, lst := range c.listeners {
		if extent, found := batch.Spools[lst.Name]; found {
			lst.SpoolSaved(extent, p.Chunks[lst.Name])
		}
	}
	c.line.Saved(p)
	c.observer.Committed(p.Records, p.Marks, time.Since(began))
	return nil
}

// saveBatch commits the batch, less the marks that a rewind has taken back.
func (o *owing) saveBatch(batch checkpoint.Batch) error {
	o.saving.Lock()
	defer o.saving.Unlock()
	o.line.Withdraw(&batch)
	if err := o.Store.Commit(batch); err != nil {
		return err
	}
	for _, lst := range o.listeners {
		if mark, found := batch.Marks[lst.Name]; found {
			lst.NoteSaved(mark)
		}
	}
	return nil
}

// encode makes the values of the batch's chunks.
func (c *committer) encode(p *line.Batch) (err error) {
	for name, chunks := range p.Chunks {
		for i := range chunks {
			if chunks[i].Value, err = c.store.Encode(chunks[i].Records); err != nil {
				return fmt.Errorf("encode %d records to spool for sink %s: %w", len(chunks[i].Records), name, err)
			}
		}
	}
	return nil
}

// batchOf is the batch as the state takes it. Records that the sink was being given when the batch was made, and has by
// now, are left out of its spool.
func (c *committer) batchOf(p *line.Batch) checkpoint.Batch {
	batch := p.State()
	for _, lst := range c.listeners {
		if extent, chunks, changed := lst.SavingSpool(p.Chunks[lst.Name]); changed {
			batch.Spools[lst.Name], batch.Chunks[lst.Name] = extent, chunks
		}
	}
	return batch
}
