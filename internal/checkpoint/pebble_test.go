package checkpoint

import "testing"

// TestI6AFullBatchFitsTheMemtable: a batch above half of a memtable is a flush of its own, and is written again and
// again by compactions.
func TestI6AFullBatchFitsTheMemtable(t *testing.T) {
	s := open(t, t.TempDir())
	items := make([]Item, MaxRecords)
	for i := range items {
		items[i] = benchItem(i, i)
		items[i].Key.Namespace = "a-namespace-of-a-team"
	}
	for range 5 { // memtables begin small, and double
		must(t, save(s, "lake", "1", items...))
		must(t, s.db.Flush())
	}
	flushes := func() int64 { // done, or waited for
		m := s.db.Metrics()
		return m.Flush.Count + m.MemTable.Count
	}
	before := flushes()
	must(t, save(s, "lake", "1", items...))
	if after := flushes(); after != before {
		t.Errorf("a batch of %d records is %d flushes", MaxRecords, after-before)
	}
}
