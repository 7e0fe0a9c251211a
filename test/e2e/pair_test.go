package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/test/kafka"
)

// leaseTime is how long a leader that says nothing is waited for. It is near the shortest that is possible.
const leaseTime = 3 * time.Second

// member is one of two exporters that share a Lease. It reaches the API server and each broker through proxies of its
// own.
type member struct {
	*exporter
	state   string // directory
	api     *proxy
	brokers []*proxy
}

// pair is two exporters of one API server, with three NATS servers and, where there is a cluster, three brokers of
// Kafka.
type pair struct {
	*rig
	inKafka []kafkaSink
	members []*member
}

// logSinks are where the log of the state may be.
const (
	logInNATS  = "nats"
	logInKafka = "idempotent"
)

// newPair starts everything but the exporters.
func newPair(t *testing.T, c *kafka.Cluster, logSink string) *pair {
	t.Helper()
	p := &pair{rig: newWorld(t, world{})}
	p.file = nil // a file cannot be shared
	servers := newNATSCluster(t)
	p.stream = followPatiently(openStream(t, servers...))
	listeners := []kafka.Listener{kafka.Behind1, kafka.Behind2}
	if c != nil {
		p.inKafka = []kafkaSink{
			{name: "idempotent", prefix: "pair.idempotent.", delivery: "idempotent", more: threeReplicas},
			{name: "transactional", prefix: "pair.transactional.", delivery: "transactional", more: threeReplicas},
		}
	}
	for _, s := range p.inKafka {
		p.topics = append(p.topics, followTopics(c, s, p.names()))
	}
	for i, listener := range listeners {
		m := p.newMember(fmt.Sprint("member-", i), servers)
		var brokers []string
		if c != nil {
			for _, way := range c.Ways(listener) {
				m.brokers = append(m.brokers, newProxyAt(t, way.Front, way.Target))
				brokers = append(brokers, way.Front)
			}
		}
		m.configure(t, p.config(m, brokers, logSink))
		p.members = append(p.members, m)
	}
	return p
}

// newMember is an exporter with its proxies to the API server and to the NATS servers.
func (p *pair) newMember(name string, servers []string) *member {
	p.t.Helper()
	m := &member{exporter: p.newExporter(name), state: filepath.Join(p.dir, name)}
	m.api = newProxy(p.t, strings.TrimPrefix(p.cluster.RESTConfig().Host, "https://"))
	own := kubeconfigTo(p.t, "https://"+m.api.address(), p.cluster.Kubeconfig(), filepath.Join(p.dir, name+".kubeconfig"))
	for i, arg := range m.args {
		if arg == p.cluster.Kubeconfig() {
			m.args[i] = own
		}
	}
	for _, server := range servers {
		m.brokers = append(m.brokers, newProxy(p.t, server))
	}
	return m
}

// config is the member's sinks, with the log of the state in one of them.
func (p *pair) config(m *member, brokers []string, logSink string) string {
	var urls []string
	for _, network := range m.brokers[:3] {
		urls = append(urls, "nats://"+network.address())
	}
	text := fmt.Sprintf("- {name: nats, nats: {url: %q, stream: %s, replicas: 3}, resolved: {every: 1s, digest: true}}\n", strings.Join(urls, ","), streamName)
	for _, s := range p.inKafka {
		text += s.configAt(brokers)
	}
	return text + fmt.Sprintf("state: {log: {sink: %s}}\nha: {lease: default/kubecdc, duration: %s}\n", logSink, leaseTime)
}

// leader is the member that leads, nil where none says so.
func (p *pair) leader() *member {
	p.t.Helper()
	for _, m := range p.members {
		if m.runs() && m.leads(p.t) {
			return m
		}
	}
	return nil
}

// awaitLeader returns the member that leads.
func (p *pair) awaitLeader() (leader *member) {
	p.t.Helper()
	p.eventually("one of the two leads", func() bool {
		leader = p.leader()
		return leader != nil
	})
	return leader
}

// eventually waits for what the two exporters do. Neither may end by itself.
func (p *pair) eventually(what string, holds func() bool) {
	p.t.Helper()
	deadline := time.Now().Add(deliveryLimit)
	eventually(p.t, 2*deliveryLimit, what, func() bool {
		p.checkRunning()
		if time.Now().After(deadline) {
			p.t.Fatalf("waited %s until %s\n%s", deliveryLimit, what, p.lastLines())
		}
		return holds()
	})
}

// checkRunning fails the test if an exporter has ended.
func (p *pair) checkRunning() {
	p.t.Helper()
	for _, m := range p.members {
		if m.process != nil && !m.runs() {
			p.t.Fatalf("%s ended by itself: %v\n%s", filepath.Base(m.state), m.process.Err, p.lastLines())
		}
	}
}

func (p *pair) lastLines() string {
	p.t.Helper()
	var text strings.Builder
	for _, m := range p.members {
		fmt.Fprintf(&text, "%s says:\n%s\n", filepath.Base(m.state), m.lastLines(p.t))
	}
	return text.String()
}

// deliver makes one more object of each resource, and returns when every sink has it, and so what was written before.
func (p *pair) deliver() {
	p.t.Helper()
	uids := p.writer.finish(p.t)
	for _, sink := range p.sinks() {
		for _, uid := range uids {
			p.awaitIn(sink, "object "+uid, func(e *event) bool { return e.UID == uid })
		}
	}
	for _, uid := range uids {
		p.witness.await(p.t, uid)
	}
}

// awaitIn returns when the sink has such an event.
func (p *pair) awaitIn(sink *follower, what string, wanted func(*event) bool) {
	p.t.Helper()
	looked := 0
	p.eventually(what+" is in the sink "+sink.name, func() bool {
		for sink.read(p.t); looked < len(sink.events); looked++ {
			if wanted(&sink.events[looked]) {
				return true
			}
		}
		return false
	})
}

// quit asks the member to end, which it must do well.
func (p *pair) quit(m *member) {
	p.t.Helper()
	if code, said := p.end(m); code != 0 {
		p.t.Fatalf("%s ended with code %d\n%s", filepath.Base(m.state), code, said)
	}
}

// end asks the member to end, and returns its exit code and the last that it said.
func (p *pair) end(m *member) (code int, said string) {
	p.t.Helper()
	p.eventually("the member listens", m.listens)
	code, _, err := m.process.terminate(stopLimit)
	if said = m.lastLines(p.t); err != nil {
		p.t.Fatalf("%s did not end: %v\n%s", filepath.Base(m.state), err, said)
	}
	m.process = nil
	return code, said
}

// die kills the member, with its state if that is to be lost, too.
func (m *member) die(t *testing.T, lost bool) {
	t.Helper()
	m.process.Kill()
	m.process = nil
	if lost {
		if err := os.RemoveAll(m.state); err != nil {
			t.Fatal(err)
		}
	}
}
