package wire

import (
	"fmt"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/test/kafka"
)

// TestI3FaultsOfLeaders holds that the same bytes, sent again after each error, come through a leader that is killed,
// stopped or paused, once and in order.
func TestI3FaultsOfLeaders(t *testing.T) {
	kafka.RequireReal(t)
	if testing.Short() {
		t.Skip("three brokers, and each fault takes seconds")
	}
	real := kafka.Start(t, kafka.Options{Nodes: 3})
	c := open(t, Options{Brokers: real.Brokers(), Timeout: 3 * time.Second})
	topic := made(t, c, 1, nil)
	p, sequence := producer(t, c), int32(0)
	pause := time.NewTicker(20 * time.Millisecond)
	defer pause.Stop()
	send := func() (failures int, reasons string) {
		for t.Context().Err() == nil {
			_, err := c.Produce(t.Context(), ProduceRequest{Topic: topic, Batch: batch{Producer: p, sequence: sequence, values: []string{fmt.Sprint(sequence)}}.bytes()})
			if err == nil {
				sequence++
				return failures, reasons
			}
			if Classify(err) != Retriable {
				t.Fatal(err)
			}
			failures, reasons = failures+1, Reason(err)
			c.Refresh()
			<-pause.C
		}
		t.Fatal(t.Context().Err())
		return 0, ""
	}
	for _, fault := range []struct {
		name       string
		hurt, mend func(int) error
	}{
		{"killed", real.Kill, func(id int) error { return real.StartNodes(t.Context(), id) }},
		{"stopped", real.StopNode, func(id int) error { return real.StartNodes(t.Context(), id) }},
		{"paused", real.Pause, real.Resume},
	} {
		send()
		leader, err := real.LeaderOf(t.Context(), topic, 0)
		if err == nil {
			err = fault.hurt(leader)
		}
		must(t, err)
		began := time.Now()
		failures, last := send()
		t.Logf("leader %s: acknowledged after %s and %d failures, the last one %s", fault.name, time.Since(began).Round(time.Millisecond), failures, last)
		must(t, fault.mend(leader))
		must(t, real.AwaitISR(t.Context(), topic))
	}
	for i, record := range real.ConsumeFast(t, topic, kafka.JudgeOptions{}) {
		if string(record.Value) != fmt.Sprint(i) || record.Offset != int64(i) {
			t.Errorf("record %d is %q at offset %d", i, record.Value, record.Offset)
		}
	}
	bounds, err := settle(t.Context(), func() ([]Bounds, error) { return c.Bounds(t.Context(), topic, 1, false) })
	if err != nil || bounds[0].End != int64(sequence) {
		t.Errorf("the log ends at %v, %v; want %d", bounds, err, sequence)
	}
}
