package pipeline

import (
	"context"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/fifo"
)

// committer saves what is delivered. Marks of sinks that open, and streams that end, are saved elsewhere: see
// Line.saving.
type committer struct {
	line     *Line
	store    *checkpoint.Store
	observer Observer
	// leave takes a sink out of the line, which holds up others.
	leave func(*listener) error
}

// bookmarkWait is how long a bookmark may wait to be saved together with others. Hundreds of quiet streams get one a
// minute each, and what a crash costs is that the watch begins so much earlier.
const bookmarkWait = 2 * time.Second

// run commits until ctx ends; what moved until then is committed before it returns, if the store takes it at once.
func (c *committer) run(ctx context.Context) error {
	var waited <-chan time.Time // nil while no bookmark waits
	for {
		select {
		case <-c.line.moved:
			if waited == nil {
				waited = time.After(bookmarkWait)
			}
			continue
		case <-c.line.wake:
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
	for _, p := range c.line.advance() {
		if err := c.save(ctx, p); err != nil {
			return err
		}
	}
	for _, lst := range c.line.listeners {
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
func (c *committer) save(ctx context.Context, p *part) error {
	began := time.Now()
	chunks, err := c.encode(p)
	if err != nil {
		return err
	}
	batch := c.batchOf(p, chunks)
	if len(p.records) == 0 && len(p.marks) == 0 && len(p.told) == 0 && len(batch.Spools) == 0 {
		return nil
	}
	attempt := func() error {
		err = c.line.save(c.store, batch)
		if err != nil && ctx.Err() == nil {
			c.observer.CommitFailed(err)
		}
		return err
	}
	if backoff.Retry(attempt, backoff.WithContext(retryForever(), ctx)) != nil {
		return fmt.Errorf("save %d delivered records: %w", len(p.records), err)
	}
	for _, lst := range c.line.listeners {
		if extent, found := batch.Spools[lst.Name]; found {
			lst.spooled(extent, p.chunks)
		}
	}
	c.line.toldIsSaved(p.told)
	c.line.committed(p.records)
	c.observer.Committed(p.records, p.marks, time.Since(began))
	return nil
}

// encode makes what goes to disk of the part's chunks.
func (c *committer) encode(p *part) ([]checkpoint.Chunk, error) {
	var chunks []checkpoint.Chunk
	for _, chunk := range p.chunks {
		lst := c.line.listeners[chunk.listener]
		value, err := c.store.Encode(chunk.records)
		if err != nil {
			return nil, fmt.Errorf("encode %d records to spool for sink %s: %w", len(chunk.records), lst.Name, err)
		}
		chunks = append(chunks, checkpoint.Chunk{Sink: lst.Name, Part: chunk.part, Number: chunk.number, Value: value})
	}
	return chunks, nil
}

// batchOf is the part as the state takes it. Records that the sink was being given when the part was made, and has by
// now, are left out of its spool.
func (c *committer) batchOf(p *part, chunks []checkpoint.Chunk) checkpoint.Batch {
	batch := checkpoint.Batch{Records: p.records, Marks: p.marks, Held: p.told, Compared: p.compared, Spools: map[string]fifo.Spool{}, Carried: map[string]checkpoint.Carried{}}
	for name, of := range p.carried {
		batch.Carried[name] = checkpoint.Carried{IDs: of.all(), From: of.from}
	}
	for _, lst := range c.line.listeners {
		extent := lst.extent()
		for i, chunk := range chunks {
			e := &extent[chunk.Part]
			if chunk.Sink != lst.Name || chunk.Number < e.First {
				continue
			}
			batch.Chunks = append(batch.Chunks, chunk)
			e.Next = chunk.Number + 1
			e.Bytes += int64(len(chunk.Value))
			e.Records += int64(len(p.chunks[i].records))
		}
		if !lst.isSaved(extent) {
			batch.Spools[lst.Name] = extent
		}
	}
	return batch
}
