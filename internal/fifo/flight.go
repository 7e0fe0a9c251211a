package fifo

import (
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
)

// flight is what the sink is being given: what was taken and is not acknowledged.
type flight struct {
	records []*change.Record
	read    *reading            // nil where the records are from memory
	ahead   map[uint64]struct{} // Seqs of records that were taken from memory and are on disk, or on their way there
	unsaved int                 // of the records are not
}

// reading is what was read from disk.
type reading struct {
	cursor [2]uint64 // after it
	amount amount    // of Main
}

// take begins to give the sink the records.
func (f *flight) take(records []*change.Record, read *reading) {
	f.records, f.read, f.unsaved = append(f.records[:0], records...), read, len(records)
	if read != nil {
		f.unsaved = 0
	}
}

// onDisk says whether the record is not the tracker's any more, because it was read from disk or has gone there.
func (f *flight) onDisk(rec *change.Record) bool {
	_, ahead := f.ahead[rec.Seq]
	return ahead || rec.Seq == 0
}

// isSaved says whether some of what was taken is on disk.
func (f *flight) isSaved() bool { return f.read != nil || len(f.ahead) > 0 }

// spill notes that the record goes to disk, too, and says where among those that were taken it is.
func (f *flight) spill(rec *change.Record) (order uint64) {
	f.ahead[rec.Seq] = struct{}{}
	f.unsaved--
	return uint64(slices.Index(f.records, rec))
}

// ack notes that the sink has the records. What a listener put in aside was never taken. What was cut or replaced on
// its way has the Seq of what it was, and what is from disk has none.
func (f *flight) ack(batch []*change.Record) {
	for _, rec := range batch {
		at := slices.IndexFunc(f.records, func(taken *change.Record) bool { return taken.Seq == rec.Seq })
		switch {
		case rec.Aside || at < 0:
			continue
		case at == 0: // as a rule
			f.records = f.records[1:]
		default:
			f.records = slices.Delete(f.records, at, at+1)
		}
		if !f.onDisk(rec) {
			f.unsaved--
		}
	}
}

// end forgets what was taken.
func (f *flight) end() {
	f.records, f.read, f.unsaved = f.records[:0], nil, 0
	clear(f.ahead)
}
