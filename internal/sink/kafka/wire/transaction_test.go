package wire

import (
	"testing"
	"time"
)

func TestTransactionErrors(t *testing.T) {
	c, ctx := open(t, Options{Brokers: realKafka(t).Brokers()}), t.Context()
	topic, id := made(t, c, 1, nil), topicName(t)
	initialize := func(timeout time.Duration) (Producer, error) {
		return settle(ctx, func() (Producer, error) { return c.InitProducer(ctx, id, timeout, NoProducer()) })
	}
	p, err := initialize(time.Minute)
	must(t, err)
	tx := Tx{id, p}
	named := ProduceRequest{Topic: topic, TransactionalID: id, Batch: batch{Producer: p, transactional: true, values: []string{"a"}}.bytes()}
	unnamed := named
	unnamed.TransactionalID = ""
	produce := func(r ProduceRequest) func() error { return func() error { _, err := sent(t, c, r); return err } }
	for _, step := range []struct {
		name  string
		do    func() error
		code  int16
		class Class
	}{
		{"produce without a transaction", produce(named), 48, Reopen},
		{"end without a transaction", func() error { return c.EndTransaction(ctx, tx, true) }, 48, Reopen},
		{"begin", func() error { return c.AddPartitions(ctx, tx, map[string][]int32{topic: {0}}) }, 0, Retriable},
		{"produce without the transactional id", produce(unnamed), 53, Fatal},
		{"a timeout of an hour", func() error { _, err := initialize(time.Hour); return err }, 50, Fatal},
		{"end another producer's", func() error { return c.EndTransaction(ctx, Tx{id, Producer{ID: p.ID + 1000}}, true) }, 49, Reopen},
	} {
		if err := answered(ctx, step.do); Code(err) != step.code || Classify(err) != step.class {
			t.Errorf("%s: %v, want code %d, %s", step.name, err, step.code, step.class)
		}
	}
}
