package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// crewFault is what happens to one of several exporters. It returns when that is over, and the exporter runs again.
type crewFault struct {
	name   string
	weight int
	happen func(m *crew, x *exporter)
}

// faults are those that there can be.
func (m *crew) faults() []crewFault {
	all := []crewFault{
		{"killed", 24, (*crew).kill},
		{"paused", 20, (*crew).pause},
		{"cut off from an API server", 10, func(m *crew, x *exporter) { m.cutOff(m.ways[x].api[m.random.IntN(len(m.worlds))]) }},
		{"cut off from the brokers", 10, func(m *crew, x *exporter) { m.cutOff(m.ways[x].toBrokers()...) }},
		{"cut off from all of these", 8, func(m *crew, x *exporter) { m.cutOff(append(m.ways[x].toBrokers(), m.ways[x].api...)...) }},
		{"stopped", 10, (*crew).end},
		{"all killed", 5, func(m *crew, _ *exporter) { m.killAll() }},
	}
	if m.broker != nil || m.kafka != nil && m.ways[m.all[0]].kafka == nil {
		all = append(all, crewFault{"without a broker", 8, func(m *crew, _ *exporter) { m.loseBroker() }})
	}
	if m.hasTasks {
		all = append(all, crewFault{"placed at random", 5, func(m *crew, _ *exporter) { m.placeAtRandom(8 * time.Second) }})
	}
	return all
}

// suffer lets something happen to one of the exporters, mostly to the one that leads where they share one task.
func (m *crew) suffer() {
	m.t.Helper()
	m.checkRunning()
	x := m.all[m.random.IntN(len(m.all))]
	if leader := m.leader(); !m.hasTasks && leader != nil && m.random.IntN(4) > 0 {
		x = leader
	}
	total := 0
	for _, f := range m.faults() {
		total += f.weight
	}
	drawn := m.random.IntN(total)
	for _, f := range m.faults() {
		if drawn -= f.weight; drawn < 0 {
			began := time.Now()
			f.happen(m, x)
			m.met[f.name]++
			m.t.Logf("%s for %.1f s", f.name, time.Since(began).Seconds())
			return
		}
	}
}

// upTo waits for any time up to the limit.
func (m *crew) upTo(limit time.Duration) {
	select {
	case <-time.After(time.Duration(m.random.Int64N(int64(limit)))):
	case <-m.t.Context().Done():
	}
}

// kill takes away the exporter, and with it its disk now and then.
func (m *crew) kill(x *exporter) {
	m.die(x, m.random.IntN(4) == 0)
	m.upTo(2 * lease)
	x.start(m.t)
}

// die kills the exporter, with its state if that is to be lost, too.
func (m *crew) die(x *exporter, lost bool) {
	m.t.Helper()
	x.process.Kill()
	if x.process = nil; lost {
		if err := os.RemoveAll(strings.TrimSuffix(x.logPath, ".log")); err != nil {
			m.t.Fatal(err)
		}
	}
}

// pause lets the exporter sleep, mostly until another one can have taken over.
func (m *crew) pause(x *exporter) {
	x.signal(m.t, syscall.SIGSTOP)
	m.upTo(3 * lease)
	x.signal(m.t, syscall.SIGCONT)
}

// cutOff takes the networks away. They may have forgotten their connections then; else what was sent comes late.
func (m *crew) cutOff(networks ...*proxy) {
	for _, network := range networks {
		network.allow(0)
	}
	m.upTo(3 * lease)
	forgets := m.random.IntN(2) == 0
	for _, network := range networks {
		if forgets {
			network.reset()
		}
		network.allow(-1)
	}
}

// end stops the exporter as a rolling update does.
func (m *crew) end(x *exporter) {
	m.stop(x)
	m.upTo(lease)
	x.start(m.t)
}

// killAll may leave nothing but the log of the state.
func (m *crew) killAll() {
	lost := m.random.IntN(2) == 0
	for _, x := range m.all {
		m.die(x, lost)
	}
	for _, x := range m.all {
		x.start(m.t)
	}
}

// loseBroker kills the NATS server, or one of the brokers of Kafka, which starts again.
func (m *crew) loseBroker() {
	m.t.Helper()
	if m.kafka == nil || m.broker != nil && m.random.IntN(2) == 0 {
		m.broker.kill()
		m.upTo(2 * lease)
		m.broker.start()
		return
	}
	ids := m.kafka.NodeIDs()
	if err := m.kafka.Kill(ids[m.random.IntN(len(ids))]); err != nil {
		m.t.Fatal(err)
	}
	m.upTo(2 * lease)
	ctx, cancel := context.WithTimeout(m.t.Context(), scenarioLimit)
	defer cancel()
	if err := m.kafka.StartNodes(ctx); err != nil {
		m.t.Fatal(err)
	}
}

// placeAtRandom lets the Leases say something else every half a second: exporters that are none come and go, and tasks
// are said to be those of others. No promise rests on them.
func (m *crew) placeAtRandom(span time.Duration) {
	m.t.Helper()
	leases := m.client.Resource(schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}).Namespace("default")
	const role, ghost = "kubecdc/lease", "kubecdc-member-ghost-"
	for until := time.Now().Add(span); time.Now().Before(until) && m.t.Context().Err() == nil; {
		list, err := leases.List(m.t.Context(), metav1.ListOptions{LabelSelector: role})
		if err != nil {
			m.t.Fatal(err)
		}
		var members, tasks []unstructured.Unstructured
		for _, one := range list.Items {
			if one.GetLabels()[role] == "member" {
				members = append(members, one)
			} else {
				tasks = append(tasks, one)
			}
		}
		one := members[m.random.IntN(len(members))].DeepCopy()
		name := one.GetName()
		switch m.random.IntN(3) {
		case 0:
			name = fmt.Sprint(ghost, m.random.IntN(3))
			one.SetName(name)
			one.SetResourceVersion("")
			one.SetUID("")
			_ = unstructured.SetNestedField(one.Object, name, "spec", "holderIdentity")
			_, err = leases.Create(m.t.Context(), one, metav1.CreateOptions{})
		case 1:
			err = leases.Delete(m.t.Context(), name, metav1.DeleteOptions{})
		default:
			holder, _, _ := unstructured.NestedString(one.Object, "spec", "holderIdentity")
			task := tasks[m.random.IntN(len(tasks))]
			_ = unstructured.SetNestedField(task.Object, holder, "spec", "holderIdentity")
			_, err = leases.Update(m.t.Context(), &task, metav1.UpdateOptions{})
		}
		_ = err // the exporters change them, too: what is not done is done at the next turn
		m.upTo(time.Second)
	}
	for i := range 3 {
		_ = leases.Delete(m.t.Context(), fmt.Sprint(ghost, i), metav1.DeleteOptions{}) // which there may not be
	}
}

// report is how often each fault was, and how often an exporter took over.
func (m *crew) report() string {
	var texts []string
	faults, changes, takeovers := 0, 0, 0
	for _, name := range slices.Sorted(maps.Keys(m.met)) {
		texts = append(texts, fmt.Sprintf("%d %s", m.met[name], name))
		faults += m.met[name]
	}
	for _, r := range m.worlds {
		versions, deletes := r.ledger.count()
		changes += versions + deletes
	}
	for _, x := range m.all {
		takeovers += strings.Count(x.log(m.t), "this exporter leads")
	}
	return fmt.Sprintf("%d faults, %d changes, %d takeovers: %s", faults, changes, takeovers, strings.Join(texts, ", "))
}
