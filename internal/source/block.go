package source

import "github.com/kubecdc/kubecdc/internal/change"

// blockRecords is how many records of a list are made at a time.
const blockRecords = 32

// block hands out the records of a list by carving up larger pieces, as frame does for their bytes: one of its own for
// each costs an allocation an object. The garbage collector frees a piece when its last record is gone. The zero value
// is ready for use.
type block struct{ free []change.Record }

// take returns a record that nobody else has.
func (b *block) take() *change.Record {
	if len(b.free) == 0 {
		b.free = make([]change.Record, blockRecords)
	}
	rec := &b.free[0]
	b.free = b.free[1:]
	return rec
}
