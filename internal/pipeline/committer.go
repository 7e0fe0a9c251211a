package pipeline

import (
	"context"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/kubecdc/kubecdc/internal/checkpoint"
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
}

func (r *run) newCommitter() *committer {
	return &committer{line: r.line, listeners: r.listeners, store: r.Store, observer: r.Observer, attempt: r.saveBatch, leave: r.leaveLine}
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
		if !lst.isLeaving() {
			continue
		}
		attempt := func() error {
			err := c.leave(lst)
			if err != nil && ctx.Err() == nil {
				c.observer.CommitFailed(err)
			}
			return err
		}
		if err := backoff.Retry(attempt, backoff.WithContext(retryForever(), ctx)); err != nil {
			return err
		}
	}
	return nil
}

// save retries as long as ctx lives: a full disk stops the line, and goes on by itself when there is space.
func (c *committer) save(ctx context.Context, p *line.Batch) error {
	began := time.Now()
	chunks, err := c.encode(p)
	if err != nil {
		return err
	}
	batch := c.batchOf(p, chunks)
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
	if backoff.Retry(attempt, backoff.WithContext(retryForever(), ctx)) != nil {
		return fmt.Errorf("save %d delivered records: %w", len(p.Records), err)
	}
	for _, lst := range c.listeners {
		if extent, found := batch.Spools[lst.Name]; found {
			lst.spooled(extent, p.Chunks)
		}
	}
	c.line.Saved(p)
	c.observer.Committed(p.Records, p.Marks, time.Since(began))
	return nil
}

// saveBatch commits the batch, less the marks that a rewind has taken back.
func (r *run) saveBatch(batch checkpoint.Batch) error {
	r.saving.Lock()
	defer r.saving.Unlock()
	r.line.Withdraw(&batch)
	if err := r.Store.Commit(batch); err != nil {
		return err
	}
	for _, lst := range r.listeners {
		if mark, found := batch.Marks[lst.Name]; found {
			lst.noteSaved(mark)
		}
	}
	return nil
}

// encode makes what goes to disk of the part's chunks.
func (c *committer) encode(p *line.Batch) ([]checkpoint.Chunk, error) {
	var chunks []checkpoint.Chunk
	for _, chunk := range p.Chunks {
		value, err := c.store.Encode(chunk.Records)
		if err != nil {
			return nil, fmt.Errorf("encode %d records to spool for sink %s: %w", len(chunk.Records), chunk.Sink, err)
		}
		chunks = append(chunks, checkpoint.Chunk{Sink: chunk.Sink, Part: chunk.Part, Number: chunk.Number, Value: value})
	}
	return chunks, nil
}

// batchOf is the part as the state takes it. Records that the sink was being given when the part was made, and has by
// now, are left out of its spool.
func (c *committer) batchOf(p *line.Batch, chunks []checkpoint.Chunk) checkpoint.Batch {
	batch := p.State()
	for _, lst := range c.listeners {
		extent := lst.extent()
		for i, chunk := range chunks {
			e := &extent[chunk.Part]
			if chunk.Sink != lst.Name || chunk.Number < e.First {
				continue
			}
			batch.Chunks = append(batch.Chunks, chunk)
			e.Next = chunk.Number + 1
			e.Bytes += int64(len(chunk.Value))
			e.Records += int64(len(p.Chunks[i].Records))
		}
		if !lst.isSaved(extent) {
			batch.Spools[lst.Name] = extent
		}
	}
	return batch
}
