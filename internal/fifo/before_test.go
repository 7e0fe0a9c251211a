package fifo

import (
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// TestACoalescedRecordSaysHowTheObjectWasBeforeItself, and not how the sink was told of it last: a record is never
// changed, so that it is the one that comes again after a crash.
func TestACoalescedRecordSaysHowTheObjectWasBeforeItself(t *testing.T) {
	q := newCoalescing(Limit{Bytes: 1 << 20, Records: 10})
	for i, version := range []string{"1", "2", "3"} {
		rec := &change.Record{
			Stream: &change.Stream{Resource: change.Resource{Version: "v1", Name: "pods"}}, Seq: uint64(i + 1), Op: change.Updated,
			Key: change.Key{Namespace: "n", Name: "a"}, UID: "u", ResourceVersion: version, Object: []byte(version), Before: []byte{'0' + byte(i)},
		}
		if !q.ReserveFor(rec) {
			t.Fatal("no room")
		}
		q.Push(rec)
	}
	rec := q.Oldest()
	if q.Len() != 1 || string(rec.Object) != "3" || string(rec.Before) != "2" {
		t.Errorf("%d records, %s after %s; want one, 3 after 2", q.Len(), rec.Object, rec.Before)
	}
}
