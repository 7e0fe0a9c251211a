package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/test/kafka"
)

// lease is the shortest that an exporter takes.
const lease = 2 * time.Second

// crew is several exporters that share one task, the tasks of one cluster, or those of several clusters. Each has
// networks of its own.
type crew struct {
	*rig              // of the first cluster
	worlds   []*rig   // of all
	of       []string // the names of the clusters where there are several
	all      []*exporter
	ways     map[*exporter]*ways
	config   string   // of all exporters
	servers  []string // of NATS
	kafka    *kafka.Cluster
	hasTasks bool        // else all share one
	inKafka  []kafkaSink // of all clusters
	random   *rand.Rand
	met      map[string]int // how often each fault was
}

// ways are the networks between one exporter and the servers.
type ways struct {
	api   []*proxy // of each of the worlds
	nats  []*proxy
	kafka []*proxy // nil where there are more than two exporters
}

func (w *ways) toBrokers() []*proxy { return slices.Concat(w.nats, w.kafka) }

// newCrew has no exporter and no sink yet. The clusters are called a, b and so on where they are several.
func newCrew(t *testing.T, clusters int) *crew {
	t.Helper()
	m := &crew{random: rand.New(rand.NewPCG(seed(t), 46)), ways: map[*exporter]*ways{}, met: map[string]int{}}
	for i := range clusters {
		r := newWorld(t, world{})
		r.file = nil // a file cannot be shared
		if m.worlds = append(m.worlds, r); clusters > 1 {
			m.of = append(m.of, string(rune('a'+i)))
		}
	}
	m.rig = m.worlds[0]
	return m
}

// intoNATS has the exporters write into a stream for each cluster and each task; 0 tasks are one that has no number.
func (m *crew) intoNATS(tasks int, more string, servers ...string) {
	m.t.Helper()
	m.servers, m.hasTasks = servers, tasks > 0
	parts := ""
	if len(m.of) > 0 {
		parts = "_{cluster}"
	}
	if tasks > 0 {
		parts += "_{task}"
	}
	if parts == "" {
		m.stream = followPatiently(openStream(m.t, servers...))
	} else {
		more += ", subject: 'k8s" + strings.ReplaceAll(parts, "_", ".") + ".{group}.{resource}.{namespace}.{name}'"
		for i, r := range m.worlds {
			var logs []*streamLog
			for task := range tasks {
				log := openStream(m.t, servers...)
				log.name = m.inCluster(i, strings.ReplaceAll(streamName+parts, "{task}", fmt.Sprint(task+1)))
				logs = append(logs, log)
			}
			r.stream = followStreams(logs)
		}
	}
	m.config += fmt.Sprintf("- {name: bus, nats: {url: %q, stream: '%s'%s}, resolved: {every: 1s, digest: true}}\n",
		"nats://"+strings.Join(servers, ",nats://"), streamName+parts, more)
}

// inCluster is the text with the name of the cluster.
func (m *crew) inCluster(i int, text string) string {
	if len(m.of) == 0 {
		return text
	}
	return strings.ReplaceAll(text, "{cluster}", m.of[i])
}

// intoKafka has the exporters write with both deliveries, into topics of the prefix.
func (m *crew) intoKafka(c *kafka.Cluster, prefix string) {
	m.t.Helper()
	m.kafka = c
	for _, delivery := range []string{"idempotent", "transactional"} {
		s := kafkaSink{name: delivery, prefix: prefix + delivery + ".", delivery: delivery, more: threeReplicas}
		m.config += s.config(c)
		for i, r := range m.worlds {
			own := s
			own.prefix = m.inCluster(i, s.prefix)
			m.inKafka = append(m.inKafka, own)
			r.topics = append(r.topics, followTopics(c, own, r.names()))
		}
	}
}

// enlist makes so many exporters, which keep the log of the state there.
func (m *crew) enlist(count int, log string) {
	m.t.Helper()
	name := "default/kubecdc"
	if len(m.of) > 0 {
		name += "-{cluster}"
	}
	m.config += fmt.Sprintf("state: {log: {sink: %s}}\nha: {lease: '%s', duration: %s}\nredactKey: k\ndiscovery: {interval: 1s}\n", log, name, lease)
	for i := range count {
		x, w := m.newExporter(fmt.Sprint("member-", i)), &ways{}
		for _, r := range m.worlds {
			w.api = append(w.api, newProxy(m.t, strings.TrimPrefix(r.cluster.RESTConfig().Host, "https://")))
		}
		for _, server := range m.servers {
			w.nats = append(w.nats, newProxy(m.t, server))
		}
		if behind := []kafka.Listener{kafka.Behind1, kafka.Behind2}; m.kafka != nil && count <= len(behind) {
			for _, way := range m.kafka.Ways(behind[i]) {
				w.kafka = append(w.kafka, newProxyAt(m.t, way.Front, way.Target))
			}
		}
		m.all, m.ways[x] = append(m.all, x), w
		x.args[slices.Index(x.args, m.cluster.Kubeconfig())] = m.kubeconfig(x, 0)
	}
	m.exporter = m.all[0]
}

// kubeconfig is the way of the exporter to the API server of a world.
func (m *crew) kubeconfig(x *exporter, world int) string {
	m.t.Helper()
	copied := strings.TrimSuffix(x.logPath, ".log") + fmt.Sprintf("-%d.kubeconfig", world)
	return kubeconfigTo(m.t, "https://"+m.ways[x].api[world].address(), m.worlds[world].cluster.Kubeconfig(), copied)
}

// spread has the exporter begin with so many tasks when it starts next, of these clusters where there are several.
func (m *crew) spread(x *exporter, tasks int, clusters ...string) {
	m.t.Helper()
	text := m.config
	if tasks > 0 {
		text += fmt.Sprintf("tasks: %d\n", tasks)
	}
	for i, name := range clusters {
		if i == 0 {
			text += "clusters:\n"
		}
		text += fmt.Sprintf("- {name: %s, kubeconfig: %s}\n", name, m.kubeconfig(x, slices.Index(m.of, name)))
	}
	for i, network := range m.ways[x].nats {
		text = strings.ReplaceAll(text, m.servers[i], network.address())
	}
	if networks := m.ways[x].kafka; networks != nil {
		var fronts []string
		for _, network := range networks {
			fronts = append(fronts, network.address())
		}
		text = strings.ReplaceAll(text, strings.Join(m.kafka.Brokers(), ", "), strings.Join(fronts, ", "))
	}
	x.configure(m.t, text)
}

// begin starts the exporters and, when they have delivered what there is, the writers.
func (m *crew) begin(tasks int) {
	m.t.Helper()
	for _, r := range m.worlds {
		r.summon()
		r.writer.populate(m.t)
	}
	for _, x := range m.all {
		m.spread(x, tasks, m.of...)
		x.start(m.t)
	}
	m.deliver()
	m.deliver() // the first may be in the middle of a snapshot
	for _, r := range m.worlds {
		r.writer.start(m.t)
	}
}

// conclude ends everything, and judges what the sinks have: every change once, in order, and no gap.
func (m *crew) conclude() {
	m.t.Helper()
	for _, r := range m.worlds {
		r.writer.stop(m.t)
	}
	m.deliver()
	m.deliver()
	if !m.hasTasks { // /statusz is one exporter's then
		m.awaitLeader(nil)
		m.idle()
	}
	for _, x := range m.all {
		if code := m.stop(x); code != 0 {
			m.t.Fatalf("%s ended with code %d:\n%s", x.logPath, code, x.lastLines(m.t))
		}
	}
	m.t.Log(m.report())
	for _, s := range m.inKafka {
		m.awaitTransactions(m.kafka, s)
	}
	for _, r := range m.worlds {
		r.judge(false)
	}
}

// eventually waits for what the exporters do. None may end by itself.
func (m *crew) eventually(what string, holds func() bool) {
	m.t.Helper()
	eventually(m.t, deliveryLimit, what+" (see "+filepath.Join(m.dir, "member-*.log")+")", func() bool {
		m.checkRunning()
		return holds()
	})
}

func (m *crew) checkRunning() {
	m.t.Helper()
	for _, x := range m.all {
		if x.process != nil && !x.runs() {
			m.t.Fatalf("%s ended by itself: %v, %v\n%s", x.logPath, x.process.Err, x.process.Cmd.ProcessState, x.lastLines(m.t))
		}
	}
}

// deliver makes one more object of each resource of the worlds, and returns when every sink has them, and so what was
// before.
func (m *crew) deliver(worlds ...*rig) {
	m.t.Helper()
	if len(worlds) == 0 {
		worlds = m.worlds
	}
	uids := make([][]string, len(worlds))
	for i, r := range worlds {
		uids[i] = r.writer.finish(m.t)
	}
	for i, r := range worlds {
		for _, sink := range r.sinks() {
			for _, uid := range uids[i] {
				m.eventually("object "+uid+" is in the sink "+sink.name, func() bool {
					sink.read(m.t)
					return slices.ContainsFunc(sink.events, func(e event) bool { return e.UID == uid })
				})
			}
		}
		for _, uid := range uids[i] {
			if r.witness != nil {
				r.witness.await(m.t, uid)
			}
		}
	}
}

// stop asks the exporter to end, and returns its exit code. What a busy broker has not answered in time may be left to
// the next start.
func (m *crew) stop(x *exporter) (code int) {
	m.t.Helper()
	m.eventually("the exporter listens, and so knows a signal", func() bool {
		conn, err := net.Dial("tcp4", x.listen)
		return err == nil && conn.Close() == nil
	})
	code, _, err := x.process.terminate(stopLimit)
	if x.process = nil; err != nil || code != 0 && !strings.Contains(x.lastLines(m.t), leavesRest) {
		m.t.Fatalf("%s ended with code %d, %v:\n%s", x.logPath, code, err, x.lastLines(m.t))
	}
	return code
}

// awaitLeader returns the exporter that leads, which is not the one given.
func (m *crew) awaitLeader(but *exporter) *exporter {
	m.t.Helper()
	m.eventually("another exporter leads", func() bool {
		leader := m.leader()
		if leader != nil && leader != but {
			m.exporter = leader
		}
		return leader != nil && leader != but
	})
	return m.exporter
}

// leader is an exporter that leads, nil where none says so.
func (m *crew) leader() *exporter {
	m.t.Helper()
	for _, x := range m.all {
		if !x.runs() {
			continue
		}
		if _, said, err := x.ask("/metrics", time.Second); err == nil && strings.Contains(withoutCluster(said), "kubecdc_leader{} 1") {
			return x
		}
	}
	return nil
}

// has are the tasks that the exporter leads.
func (m *crew) has(x *exporter) (tasks []string) {
	m.t.Helper()
	_, said, err := x.ask("/statusz", time.Second)
	var status struct {
		Tasks map[string]struct {
			Status *struct{ HA struct{ Leads bool } }
		}
	}
	if err != nil || json.Unmarshal([]byte(said), &status) != nil {
		return nil
	}
	for name, task := range status.Tasks {
		if task.Status != nil && task.Status.HA.Leads {
			tasks = append(tasks, name)
		}
	}
	return tasks
}

// awaitBalance returns when each of the tasks is led, by exporters none of which has two more than another one.
func (m *crew) awaitBalance(tasks int) {
	m.t.Helper()
	m.eventually(fmt.Sprintf("%d tasks are spread evenly", tasks), func() bool {
		var all []string
		least, most := tasks, 0
		for _, x := range m.all {
			if x.runs() {
				has := m.has(x)
				if len(m.of) == 0 { // else there are none that have been given up
					has = slices.DeleteFunc(has, func(name string) bool { return name > fmt.Sprint(tasks) })
				}
				least, most, all = min(least, len(has)), max(most, len(has)), append(all, has...)
			}
		}
		slices.Sort(all)
		return len(slices.Compact(all)) == tasks && most-least <= 1
	})
}
