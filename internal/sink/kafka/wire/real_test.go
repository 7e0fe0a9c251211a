package wire

import (
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/kubecdc/kubecdc/test/kafka"
)

func TestProduceAndFetch(t *testing.T) {
	real := anyKafka(t)
	c := open(t, Options{Brokers: real.Brokers()})
	topic := made(t, c, 2, nil)
	p := producer(t, c)
	send := func(sequence int32, values ...string) (int64, error) {
		return sent(t, c, ProduceRequest{Topic: topic, Partition: 1, Batch: batch{Producer: p, sequence: sequence, values: values}.bytes()})
	}
	for _, step := range []struct {
		name     string
		sequence int32
		offset   int64
		code     int16
		class    Class
	}{
		{"first", 0, 0, 0, 0}, {"second", 2, 2, 0, 0}, {"first again", 0, 0, 0, 0}, {"gap", 6, -1, 45, Reopen}, {"third", 4, 4, 0, 0},
	} {
		offset, err := send(step.sequence, "a", "b")
		if Code(err) != step.code || err == nil && offset != step.offset || Classify(err) != step.class {
			t.Errorf("%s: offset %d, %v; want %d, code %d", step.name, offset, err, step.offset, step.code)
		}
	}
	bounds, err := c.Bounds(t.Context(), topic, 2, true)
	if want := []Bounds{{0, 0}, {0, 6}}; err != nil || !slices.Equal(bounds, want) {
		t.Errorf("bounds %v, %v; want %v", bounds, err, want)
	}
	result, err := c.Fetch(t.Context(), FetchRequest{Topic: topic, Partition: 1, Offset: 3, Committed: true})
	if got := fetched(result.RecordBatches); err != nil || !slices.Equal(got, []string{"a", "b", "a", "b"}) {
		t.Errorf("fetched %q, %v; want the batch of offset 3 and the next", got, err)
	}
	if _, err := c.Fetch(t.Context(), FetchRequest{Topic: topic, Partition: 1, Offset: 7}); Code(err) != kerr.OffsetOutOfRange.Code {
		t.Errorf("fetch beyond the end: %v, want code 1", err)
	}
	if got := real.ConsumeFast(t, topic, kafka.JudgeOptions{}); len(got) != 6 {
		t.Errorf("an independent client reads %d records, want 6", len(got))
	}
}
