package wire

import (
	"testing"
	"time"
)

// TestTransactionTimeoutIsThatOfTheLast who got a producer, and not of a request that only aborted a transaction.
func TestTransactionTimeoutIsThatOfTheLast(t *testing.T) {
	c := open(t, Options{Brokers: realKafka(t).Brokers()})
	w := newWriter(t, c, made(t, c, 1, nil), topicName(t))
	ask := func(want time.Duration) {
		t.Helper()
		got, err := settle(t.Context(), func() (time.Duration, error) { return c.TransactionTimeout(t.Context(), topicName(t)) })
		if err != nil || got != want {
			t.Errorf("got %s, %v; want %s", got, err, want)
		}
	}
	ask(time.Minute)
	must(t, w.add())
	if _, err := c.InitProducer(t.Context(), topicName(t), time.Second, NoProducer()); Code(err) != 51 {
		t.Fatalf("in a transaction: %v, want code 51", err)
	}
	ask(time.Minute)
	if _, err := settle(t.Context(), func() (Producer, error) {
		return c.InitProducer(t.Context(), topicName(t), time.Second, NoProducer())
	}); err != nil {
		t.Fatal(err)
	}
	ask(time.Second)
	if _, err := c.TransactionTimeout(t.Context(), "nobody has this"); Code(err) != 105 {
		t.Errorf("of an id that nobody has: %v, want code 105", err)
	}
}
