package listener

import (
	"context"

	"github.com/kubecdc/kubecdc/internal/change"
)

// beside are the Seqs of records that belong to no stream that is read, and that are neither delivered nor on disk.
type beside map[uint64]struct{}

// note notes that the record is queued.
func (b beside) note(rec *change.Record) {
	if rec.Op == change.Actor {
		b[rec.Seq] = struct{}{}
	}
}

// settle notes that the records are delivered, or on disk.
func (b beside) settle(records []*change.Record) {
	if len(b) == 0 {
		return
	}
	for _, rec := range records {
		delete(b, rec.Seq)
	}
}

// Drain returns when everything that was pushed before is delivered or on disk, or the sink is offered nothing any more,
// or with ctx's error.
func (i *Intake) Drain(ctx context.Context) error {
	i.mu.Lock()
	last := uint64(0)
	for seq := range i.beside {
		last = max(last, seq)
	}
	i.mu.Unlock()
	for {
		i.mu.Lock()
		drained, freed := true, i.freed
		for seq := range i.beside {
			drained = drained && seq > last
		}
		i.mu.Unlock()
		if drained {
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
