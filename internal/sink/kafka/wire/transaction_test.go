package wire

import (
	"slices"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/test/kafka"
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
	_, err := settle(w.Context(), func() (ProduceResult, error) {
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

// transact does a whole transaction.
func (w *writer) transact(commit bool, values ...string) {
	w.Helper()
	if err := w.add(); err != nil {
		w.Fatal(err)
	}
	if err := w.produce(values...); err != nil {
		w.Fatal(err)
	}
	if err := w.end(commit); err != nil {
		w.Fatal(err)
	}
}

func TestTransactions(t *testing.T) {
	real := anyKafka(t)
	c := open(t, Options{Brokers: real.Brokers()})
	w := newWriter(t, c, made(t, c, 1, nil), topicName(t))
	w.transact(true, "a", "b")
	w.transact(false, "c")
	w.transact(true, "d")
	real.AwaitTransactions(t, w.topic)
	result, err := c.Fetch(t.Context(), FetchRequest{Topic: w.topic, Committed: true})
	if want := []string{"a", "b", "control", "c", "control", "d", "control"}; err != nil || !slices.Equal(fetched(result.Records), want) {
		t.Errorf("fetched %q, %v; want %q", fetched(result.Records), err, want)
	}
	if want := []Aborted{{w.tx.Producer.ID, 3}}; !slices.Equal(result.Aborted, want) {
		t.Errorf("aborted %v, want %v", result.Aborted, want)
	}
	must(t, w.add())
	must(t, w.produce("open"))
	for committed, want := range map[bool]int64{true: 7, false: 8} {
		bounds, err := c.Bounds(t.Context(), w.topic, 1, committed)
		if err != nil || bounds[0].End != want {
			t.Errorf("end of the log where committed is %t: %v, %v; want %d", committed, bounds, err, want)
		}
	}
	result, err = c.Fetch(t.Context(), FetchRequest{Topic: w.topic, Offset: 7, Committed: true})
	if err != nil || len(result.Records) != 0 {
		t.Errorf("fetched %q, %v; want nothing of an open transaction", fetched(result.Records), err)
	}
	must(t, w.end(true))
	var values []string
	for _, record := range real.Consume(t, w.topic, kafka.JudgeOptions{ReadCommitted: true}) {
		values = append(values, string(record.Value))
	}
	if want := []string{"a", "b", "d", "open"}; !slices.Equal(values, want) {
		t.Errorf("Java's consumer reads %q, want %q", values, want)
	}
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
