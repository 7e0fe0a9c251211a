package e2e

import (
	"context"
	"fmt"
	"maps"
	"net"
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
	weight int // of a hundred
	happen func(m *crew, x *exporter)
}

func crewFaults() []crewFault {
	return []crewFault{
		{"killed", 24, (*crew).kill},
		{"paused", 20, (*crew).pause},
		{"cut off from an API server", 10, func(m *crew, x *exporter) { m.cutOff(m.ways[x][m.random.IntN(len(m.worlds))]) }},
		{"cut off from NATS", 10, func(m *crew, x *exporter) { m.cutOff(m.ways[x][len(m.worlds):]...) }},
		{"cut off from all of these", 8, func(m *crew, x *exporter) { m.cutOff(m.ways[x]...) }},
		{"stopped", 10, (*crew).end},
		{"all killed", 5, func(m *crew, _ *exporter) { m.killAll() }},
		{"without a broker", 8, func(m *crew, _ *exporter) { m.loseBroker() }},
		{"placed at random", 5, func(m *crew, _ *exporter) { m.placeAtRandom(8 * time.Second) }},
	}
}

// suffer lets something happen to one of the exporters.
func (m *crew) suffer() {
	m.t.Helper()
	x := m.all[m.random.IntN(len(m.all))]
	if !x.runs() {
		m.t.Fatalf("%s ended by itself:\n%s", x.logPath, x.lastLines(m.t))
	}
	drawn := m.random.IntN(100)
	for _, f := range crewFaults() {
		if drawn -= f.weight; drawn < 0 {
			began := time.Now()
			f.happen(m, x)
			m.met[f.name]++
			m.t.Logf("%s for %.1f s", f.name, time.Since(began).Seconds())
			return
		}
	}
	m.t.Fatal("the weights are not a hundred")
}

// upTo waits for any time up to the limit.
func (m *crew) upTo(limit time.Duration) { upTo(m.t, m.random, limit) }

// kill takes away the exporter, and with it its disk now and then.
func (m *crew) kill(x *exporter) {
	x.process.Kill()
	if m.random.IntN(4) == 0 {
		if err := os.RemoveAll(strings.TrimSuffix(x.logPath, ".log")); err != nil {
			m.t.Fatal(err)
		}
	}
	m.upTo(2 * lease)
	x.start(m.t)
}

func (m *crew) pause(x *exporter) {
	x.signal(m.t, syscall.SIGSTOP)
	m.upTo(3 * lease)
	x.signal(m.t, syscall.SIGCONT)
}

// cutOff takes the networks away. What was sent meanwhile comes late, unless the connections were reset.
func (m *crew) cutOff(networks ...*proxy) {
	cutOff(networks, m.random.IntN(2) == 0, func() { m.upTo(3 * lease) })
}

// end asks the exporter to end. What a busy broker has not answered in time is left to the next start.
func (m *crew) end(x *exporter) {
	m.t.Helper()
	eventually(m.t, deliveryLimit, "it is so far that it knows a signal"+m.said(), func() bool {
		conn, err := net.Dial("tcp", x.listen)
		return err == nil && conn.Close() == nil
	})
	if code, _, err := x.process.terminate(stopLimit); err != nil || code != 0 && !strings.Contains(x.lastLines(m.t), leavesRest) {
		m.t.Fatalf("%s ended with code %d, %v:\n%s", x.logPath, code, err, x.lastLines(m.t))
	}
	m.upTo(lease)
	x.start(m.t)
}

func (m *crew) killAll() {
	for _, x := range m.all {
		x.process.Kill()
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

// report is how often each fault was.
func (m *crew) report() string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(m.met)) {
		texts = append(texts, fmt.Sprintf("%d %s", m.met[name], name))
	}
	takeovers := 0
	for _, x := range m.all {
		takeovers += strings.Count(x.log(m.t), "this exporter leads")
	}
	return fmt.Sprintf("%d takeovers: %s", takeovers, strings.Join(texts, ", "))
}
