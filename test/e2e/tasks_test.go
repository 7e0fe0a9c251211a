package e2e

import (
	"testing"

	"github.com/kubecdc/kubecdc/test/kafka"
)

// mostTasks is as many as the streams that are followed.
const mostTasks = 4

// TestI10I11TwoExportersAreOne: two exporters share one task, of which one leads and the other takes over, while faults
// happen to both. What the sinks have in the end is what one exporter would have written that nothing ever happened to.
// There are three NATS servers, and the log of the state is there.
func TestI10I11TwoExportersAreOne(t *testing.T) {
	t.Parallel()
	twoExportersAreOne(t, nil, "bus", 10)
}

// kafkaTwoExportersAreOne has both deliveries in Kafka, too, and the log of the state where the seed says.
func kafkaTwoExportersAreOne(t *testing.T, c *kafka.Cluster) {
	twoExportersAreOne(t, c, []string{"idempotent", "bus"}[seed(t)%2], 0)
}

// twoExportersAreOne has E2E_FAULTS faults, instead of the usual number, and goes on until there were E2E_CHANGES
// changes.
func twoExportersAreOne(t *testing.T, c *kafka.Cluster, log string, usual int) {
	faults := faultsOf(t, usual)
	m := newCrew(t, 1)
	m.intoNATS(0, ", replicas: 3", newNATSCluster(t)...)
	if c != nil {
		m.intoKafka(c, "pair.")
	}
	m.enlist(2, log)
	m.begin(0)
	changes := func() int {
		versions, deletes := m.ledger.count()
		return versions + deletes
	}
	for n, wanted := 0, number(t, "E2E_CHANGES", 0); n < faults || changes() < wanted; n++ {
		if m.suffer(); n%3 == 1 { // the others come before it is over
			m.deliver()
		}
	}
	m.conclude()
}

// faultsOf is the number of the environment, or else the test's own, with which it is left out where that is 0.
func faultsOf(t *testing.T, usual int) int {
	t.Helper()
	faults := number(t, "E2E_FAULTS", usual)
	if faults == 0 {
		t.Skip("E2E_FAULTS is not set: make chaos sets it, and runs this")
	}
	return faults
}

// TestI3I4I10ALeaderWithoutItsBrokerLetsAnotherLead: the leader alone is cut off from the broker. It asks in the Lease,
// the other one answers, and leads. When nobody reaches the broker, the leader stays. Nothing is lost or repeated. It
// takes most of a minute, and so needs E2E_FAULTS.
func TestI3I4I10ALeaderWithoutItsBrokerLetsAnotherLead(t *testing.T) {
	faultsOf(t, 0)
	t.Parallel()
	m := newCrew(t, 1)
	m.broker = newBroker(t, m.dir)
	m.intoNATS(0, "", m.broker.address())
	m.enlist(2, "bus")
	m.begin(0)
	allow := func(x *exporter, bytes int) {
		for _, network := range m.ways[x].nats {
			network.reset()
			network.allow(bytes)
		}
	}
	first := m.awaitLeader(nil)
	allow(first, 0)
	second := m.awaitLeader(first)
	m.deliver()
	allow(second, 0)
	second.awaitLine(t, "it asks the others whether they do")
	if m.leader() != second {
		t.Errorf("the leader gave up though nobody reaches the broker:\n%s", second.lastLines(t))
	}
	for _, x := range m.all {
		allow(x, -1)
	}
	m.deliver()
	m.conclude()
}

// TestI3I4I10TasksGoBetweenExporters that die, sleep and stop, and resources go between tasks when their number
// changes.
func TestI3I4I10TasksGoBetweenExporters(t *testing.T) {
	t.Parallel()
	m := newCrew(t, 1)
	m.broker = newBroker(t, m.dir)
	m.intoNATS(mostTasks, "", m.broker.address())
	m.enlist(3, "bus")
	m.play(number(t, "E2E_FAULTS", 1), 3, 2, 4, 1)
}

// kafkaTasksGoBetweenExporters is the same in Kafka, with both deliveries, where each resource keeps its topic.
func kafkaTasksGoBetweenExporters(t *testing.T, c *kafka.Cluster) {
	m := newCrew(t, 1)
	m.intoKafka(c, "tasks.")
	m.hasTasks = true
	m.enlist(3, "transactional")
	m.play(number(t, "E2E_FAULTS", 0), 2, 3)
}

// play takes one number of tasks after the other, with so many faults at each.
func (m *crew) play(faults int, numbers ...int) {
	m.t.Helper()
	for at, tasks := range numbers {
		if at == 0 {
			m.begin(tasks)
		} else {
			for _, x := range m.all {
				m.stop(x)
				m.spread(x, tasks)
				x.start(m.t)
			}
		}
		m.deliver()
		for range faults {
			m.suffer()
			m.deliver()
		}
		m.awaitBalance(tasks)
	}
	m.conclude()
}

// TestI3I4I10ClustersAndTasksGoBetweenExporters: three exporters share the tasks of several clusters, which come and
// go, while they die, sleep and stop.
func TestI3I4I10ClustersAndTasksGoBetweenExporters(t *testing.T) {
	t.Parallel()
	clustersGoBetween(t, nil, 2)
}

// kafkaClustersAndTasksGoBetweenExporters has both deliveries in Kafka, too.
func kafkaClustersAndTasksGoBetweenExporters(t *testing.T, c *kafka.Cluster) {
	clustersGoBetween(t, c, 0)
}

// clustersGoBetween three exporters. E2E_FAULTS is how many faults there are, instead of the usual number, and
// E2E_CLUSTERS how many clusters, of two tasks each.
func clustersGoBetween(t *testing.T, c *kafka.Cluster, usual int) {
	faults := faultsOf(t, usual)
	m := newCrew(t, max(2, number(t, "E2E_CLUSTERS", 2)))
	m.broker = newBroker(t, m.dir)
	m.intoNATS(2, "", m.broker.address())
	if c != nil {
		m.intoKafka(c, "fleet.{cluster}.")
	}
	m.enlist(3, "bus")
	m.begin(2)
	tasks, last := 2*len(m.of), len(m.of)-1
	m.awaitBalance(tasks)
	for n := range faults {
		m.suffer()
		if n%10 == 1 { // the last cluster goes, and comes back, however long that takes: nothing changes there
			m.worlds[last].writer.stop(m.t)
			m.list(m.of[:last])
			m.deliver(m.worlds[:last]...)
			m.list(m.of)
			m.worlds[last].writer.start(m.t)
		}
		if n%3 == 1 { // the others come before it is over
			m.deliver()
		}
	}
	m.awaitBalance(tasks)
	m.conclude()
}

// list has the exporters follow these clusters, without a restart.
func (m *crew) list(clusters []string) {
	m.t.Helper()
	for _, x := range m.all {
		m.spread(x, 2, clusters...)
	}
}
