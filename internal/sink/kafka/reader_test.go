package kafka

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// TestAReaderMergesPartitionsByTheTimesOfTheirRecords, also those of a topic of frames.
func TestAReaderMergesPartitionsByTheTimesOfTheirRecords(t *testing.T) {
	options := testOptions(t, broker.Get(t), 2)
	options.Partitions = 3
	s := opened(t, options)
	var batch []sink.Message
	var want []string
	for i := range 60 {
		m := message(options.Topics[i%7/6], fmt.Sprint("key-", i%11), fmt.Sprint("id-", i))
		m.Time = time.UnixMilli(1_700_000_000_000 + int64(i))
		batch, want = append(batch, m), append(want, m.ID)
	}
	mustWrite(t, s, batch)
	r, err := NewReader(options, sink.Start{})
	must(t, err)
	t.Cleanup(func() { must(t, r.Close()) })
	var got []string
	must(t, r.Read(within(t), func(m *sink.Stored) error { got = append(got, m.Header(sink.HeaderID)); return nil }))
	if !slices.Equal(got, want) {
		t.Errorf("read is %q", got)
	}
}
