package pipeline

import (
	"context"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// committer saves what is delivered. It is the only writer of positions, inventory and marks while the pipeline runs.
type committer struct {
	line     *Line
	store    *checkpoint.Store
	observer Observer
}

// run commits until ctx ends; what moved until then is committed before it returns, if the store takes it at once.
func (c *committer) run(ctx context.Context) error {
	for {
		select {
		case <-c.line.wake:
			if err := c.commit(ctx); err != nil {
				return err
			}
		case <-ctx.Done():
			return c.commit(ctx)
		}
	}
}

// commit saves everything that may be saved now, in batches that are each whole (I5).
func (c *committer) commit(ctx context.Context) error {
	records, marks := c.line.advance()
	for len(records) > checkpoint.MaxRecords {
		if err := c.save(ctx, records[:checkpoint.MaxRecords], nil); err != nil {
			return err
		}
		records = records[checkpoint.MaxRecords:]
	}
	if len(records) == 0 && len(marks) == 0 {
		return nil
	}
	return c.save(ctx, records, marks)
}

// save retries as long as ctx lives: a full disk stops the line, and goes on by itself when there is space.
func (c *committer) save(ctx context.Context, records []*change.Record, marks map[string]sink.Mark) error {
	began := time.Now()
	var last error
	attempt := func() error {
		last = c.line.save(c.store, checkpoint.Batch{Records: records, Marks: marks})
		if last != nil && ctx.Err() == nil {
			c.observer.CommitFailed(last)
		}
		return last
	}
	if backoff.Retry(attempt, backoff.WithContext(retryForever(), ctx)) != nil {
		return fmt.Errorf("save %d delivered records: %w", len(records), last)
	}
	c.line.committed(records)
	c.observer.Committed(records, marks, time.Since(began))
	return nil
}
