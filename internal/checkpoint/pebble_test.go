package checkpoint

import (
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// TestI6AFullBatchFitsTheMemtable: a batch above half of a memtable is a flush of its own, and is written again and
// again by compactions.
func TestI6AFullBatchFitsTheMemtable(t *testing.T) {
	s := open(t, t.TempDir())
	batch := Batch{Records: make([]*change.Record, MaxRecords)}
	for i := range batch.Records {
		batch.Records[i] = benchObject(i, i)
		batch.Records[i].Key.Namespace = "a-namespace-of-a-team"
	}
	for range 5 { // memtables begin small, and double
		must(t, s.Commit(batch))
		must(t, s.db.Flush())
	}
	flushes := func() int64 { // done, or waited for
		m := s.db.Metrics()
		return m.Flush.Count + m.MemTable.Count
	}
	before := flushes()
	must(t, s.Commit(batch))
	if after := flushes(); after != before {
		t.Errorf("a batch of %d records is %d flushes", MaxRecords, after-before)
	}
}
