package kafka

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

// TestATransactionThatWaitsForTheOneBeforeIsNoFailure: only where it lasts is it told, and are the leaders asked for
// again. Whatever else can be tried again is told at once.
func TestATransactionThatWaitsForTheOneBeforeIsNoFailure(t *testing.T) {
	const notLeader = 6
	for _, c := range []struct {
		code           int16
		failures, told int
	}{
		{kerr.ConcurrentTransactions.Code, 3, 0},
		{kerr.ConcurrentTransactions.Code, endings, 0},
		{kerr.ConcurrentTransactions.Code, endings + 2, 2},
		{notLeader, 1, 1},
	} {
		told, failures := 0, c.failures
		b, err := newBrokers(&Options{Wire: wire.Options{Brokers: []string{"127.0.0.1:1"}}, Retry: func(string, error) { told++ }})
		if err == nil {
			err = b.connect()
		}
		must(t, err)
		err = b.persist(t.Context(), "begin a transaction", func(context.Context) error {
			if failures--; failures >= 0 {
				return &wire.Error{Code: c.code, Request: "add a partition"}
			}
			return nil
		})
		b.disconnect()
		if err != nil || told != c.told {
			t.Errorf("after code %d came %d times: told %d times, want %d; %v", c.code, c.failures, told, c.told, err)
		}
	}
}
