package e2e

import (
	"math/rand/v2"
	"testing"

	"github.com/kubecdc/kubecdc/test/kafka"
)

// TestI10I11TwoExportersAreOne has three NATS servers, and the log of the state there.
func TestI10I11TwoExportersAreOne(t *testing.T) {
	t.Parallel()
	undergo(t, nil, logInNATS, amount(22, 0))
}

// kafkaTwoExportersAreOne has three brokers of Kafka, too, both deliveries, and the log of the state where the seed
// says.
func kafkaTwoExportersAreOne(t *testing.T, c *kafka.Cluster) {
	undergo(t, c, []string{logInKafka, logInNATS}[seed(t)%2], 0)
}

// undergo lets two exporters share one task, of which one leads and the other takes over, while faults happen to both.
// What the sinks have in the end is what one exporter would have written that nothing ever happened to: every change
// once, in order, and no gap.
//
// E2E_FAULTS is how many faults there are, instead of the usual number; each takes some seconds. E2E_CHANGES is how
// many changes are made meanwhile at least.
func undergo(t *testing.T, c *kafka.Cluster, logSink string, usual int) {
	many := number(t, "E2E_FAULTS", usual)
	if many == 0 {
		t.Skip("E2E_FAULTS is not set: make chaos sets it, and runs this")
	}
	p := newPair(t, c, logSink)
	o := &ordeal{pair: p, random: rand.New(rand.NewPCG(seed(t), 9000)), met: map[string]int{}}
	p.summon()
	p.writer.populate(t)
	for _, m := range p.members {
		m.start(t)
	}
	p.deliver()
	leader := p.awaitLeader()
	p.deliver()
	p.eventually("the log has the state", func() bool {
		log := leader.statuses(t).State.Log
		return log != nil && log.LagSeconds < 1
	})
	p.writer.start(t)
	o.undergo(t, many, number(t, "E2E_CHANGES", 0))
	p.writer.stop(t)
	p.deliver()
	p.exporter = p.awaitLeader().exporter
	p.awaitCompared(deliveryLimit)
	p.idle()
	for _, m := range p.members {
		p.quit(m)
	}
	t.Log(o.report(t))
	for _, s := range p.inKafka {
		p.awaitTransactions(c, s)
	}
	p.judge(false)
}
