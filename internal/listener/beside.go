package listener

import (
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
