package wire

import (
	"testing"
	"time"
)

// writer is a transactional producer on one partition.
type writer struct {
	*testing.T
	c        *Cluster
	topic    string
	tx       Tx
	sequence int32
}

func newWriter(t *testing.T, c *Cluster, topic, id string) *writer {
	t.Helper()
	p, err := settle(t.Context(), func() (Producer, error) { return c.InitProducer(t.Context(), id, time.Minute, NoProducer()) })
	must(t, err)
	return &writer{T: t, c: c, topic: topic, tx: Tx{id, p}}
}

func (w *writer) add() error {
	_, err := settle(w.Context(), func() (bool, error) {
		return true, w.c.AddPartitions(w.Context(), w.tx, map[string][]int32{w.topic: {0}})
	})
	return err
}

func (w *writer) produce(values ...string) error {
	_, err := settle(w.Context(), func() (int64, error) {
		return w.c.Produce(w.Context(), ProduceRequest{Topic: w.topic, TransactionalID: w.tx.TransactionalID,
			Batch: batch{Producer: w.tx.Producer, sequence: w.sequence, transactional: true, values: values}.bytes()})
	})
	if err == nil {
		w.sequence += int32(len(values))
	}
	return err
}

func (w *writer) end(commit bool) error {
	_, err := settle(w.Context(), func() (bool, error) { return true, w.c.EndTransaction(w.Context(), w.tx, commit) })
	return err
}

func TestTransactionErrors(t *testing.T) {
	c := open(t, Options{Brokers: realKafka(t).Brokers()})
	w := newWriter(t, c, made(t, c, 1, nil), topicName(t))
	if err := w.produce("a"); Code(err) != 48 || Classify(err) != Reopen {
		t.Errorf("produce without a transaction: %v, want code 48", err)
	}
	if err := w.end(true); Code(err) != 48 {
		t.Errorf("end without a transaction: %v, want code 48", err)
	}
	must(t, w.add())
	unnamed := ProduceRequest{Topic: w.topic, Batch: batch{Producer: w.tx.Producer, transactional: true, values: []string{"a"}}.bytes()}
	if _, err := c.Produce(t.Context(), unnamed); Code(err) != 53 || Classify(err) != Fatal {
		t.Errorf("produce without the transactional id: %v, want code 53", err)
	}
	if _, err := c.InitProducer(t.Context(), topicName(t), time.Hour, NoProducer()); Code(err) != 50 || Classify(err) != Fatal {
		t.Errorf("a timeout of an hour: %v, want code 50", err)
	}
	stranger := Tx{w.tx.TransactionalID, Producer{ID: w.tx.Producer.ID + 1000}}
	if err := c.EndTransaction(t.Context(), stranger, true); Code(err) != 49 || Classify(err) != Reopen {
		t.Errorf("end of another producer's transaction: %v, want code 49", err)
	}
}
