package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/test/kafka"
)

// crew is several exporters that share the tasks of one cluster, or of several.
type crew struct {
	*rig            // of the first cluster
	worlds []*rig   // of all
	of     []string // the names of the clusters where there are several
	all    []*exporter
	ways   map[*exporter][]*proxy // to the API server of each of the worlds, and then to the NATS server
	sinks  string                 // with the log of the state
	random *rand.Rand
	kafka  *kafka.Cluster // nil where there is none
	met    map[string]int // how often each fault was
}

// mostTasks is as many as the streams that are followed.
const mostTasks = 4

// newCrew starts everything but the exporters, which write into a stream for each task.
func newCrew(t *testing.T, count int) *crew {
	t.Helper()
	m := &crew{rig: newWorld(t, world{}), random: rand.New(rand.NewPCG(seed(t), 46))}
	m.file, m.broker, m.worlds = nil, newBroker(t, m.dir), []*rig{m.rig}
	var logs []*streamLog
	for task := range mostTasks {
		logs = append(logs, m.broker.openStream(fmt.Sprintf("K8S_%d", task+1)))
	}
	m.stream = followStreams(logs)
	m.sinks = fmt.Sprintf("- {name: bus, nats: {url: %q, stream: 'K8S_{task}', subject: 'k8s.{cluster}.{task}.{group}.{resource}.{namespace}.{name}'}, resolved: {every: 1s, digest: true}}\n",
		"nats://"+m.broker.address())
	m.enlist(count, "bus")
	return m
}

// enlist makes so many exporters.
func (m *crew) enlist(count int, log string) {
	m.sinks += fmt.Sprintf("state: {log: {sink: %s}}\nha: {lease: default/kubecdc, duration: %s}\nredactKey: k\ndiscovery: {interval: 1s}\n", log, lease)
	m.ways, m.met = map[*exporter][]*proxy{}, map[string]int{}
	for i := range count {
		x := m.newExporter(fmt.Sprint("member-", i))
		for _, r := range m.worlds {
			m.ways[x] = append(m.ways[x], newProxy(m.t, strings.TrimPrefix(r.cluster.RESTConfig().Host, "https://")))
		}
		if m.broker != nil {
			m.ways[x] = append(m.ways[x], newProxy(m.t, m.broker.address()))
		}
		x.args[slices.Index(x.args, m.cluster.Kubeconfig())] = m.kubeconfig(x, 0)
		m.all = append(m.all, x)
	}
	m.exporter = m.all[0]
}

// kubeconfig is the way of the exporter to the API server of a world.
func (m *crew) kubeconfig(x *exporter, world int) string {
	m.t.Helper()
	copied := strings.TrimSuffix(x.logPath, ".log") + fmt.Sprintf("-%d.kubeconfig", world)
	return kubeconfigTo(m.t, "https://"+m.ways[x][world].address(), m.worlds[world].cluster.Kubeconfig(), copied)
}

// spread has the exporter begin with so many tasks when it starts next, of these clusters where there are several.
func (m *crew) spread(x *exporter, tasks int, clusters ...string) {
	m.t.Helper()
	text := m.sinks + fmt.Sprintf("tasks: %d\n", tasks)
	for i, name := range clusters {
		if i == 0 {
			text += "clusters:\n"
		}
		text += fmt.Sprintf("- {name: %s, kubeconfig: %s}\n", name, m.kubeconfig(x, slices.Index(m.of, name)))
	}
	if m.broker != nil {
		text = strings.ReplaceAll(text, m.broker.address(), m.ways[x][len(m.worlds)].address())
	}
	x.configure(m.t, text)
}

// followStreams follows several streams as if they were one. What is in one of them because of what is in another is
// behind that.
func followStreams(logs []*streamLog) *follower {
	last := make([]uint64, len(logs))
	return &follower{
		name: "nats",
		more: func(ctx context.Context, have int) (events []event, err error) {
			for found := true; found; {
				found = false
				for i, log := range logs {
					some, err := log.readByOne(ctx, last[i]+1)
					if err != nil {
						return nil, err
					}
					last[i] += uint64(len(some))
					events, found = append(events, some...), found || len(some) > 0
				}
			}
			slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.stored.UnixNano(), b.stored.UnixNano()) })
			for i := range events {
				events[i].place, events[i].routed = have+i+1, ""
			}
			return events, nil
		},
		again: func() *follower { return followStreams(logs) },
	}
}

// readByOne is read without a consumer: so many readings would leave too many.
func (s *streamLog) readByOne(ctx context.Context, first uint64) (events []event, err error) {
	stream, err := s.js.Stream(ctx, s.name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for seq := first; seq <= stream.CachedInfo().State.LastSeq; seq++ {
		message, err := stream.GetMsg(ctx, seq)
		if err != nil {
			return nil, fmt.Errorf("read message %d: %w", seq, err)
		}
		found, err := parseEvent(message.Data)
		if err != nil {
			return nil, fmt.Errorf("read message %d: %w", seq, err)
		}
		found.stored, found.header = message.Time, message.Header.Get("kubecdc-id")
		events = append(events, found)
	}
	return events, nil
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
				eventually(m.t, deliveryLimit, "object "+uid+" is in the sink "+sink.name+m.said(), func() bool {
					sink.read(m.t)
					return slices.ContainsFunc(sink.events, func(e event) bool { return e.UID == uid })
				})
			}
		}
		for _, uid := range uids[i] {
			r.witness.await(m.t, uid)
		}
	}
}

// said is the place of what the exporters say.
func (m *crew) said() string { return " (see " + filepath.Join(m.dir, "member-*.log") + ")" }

// has are the tasks that the exporter leads.
func (m *crew) has(x *exporter) (tasks []string) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+x.listen+"/statusz", nil)
	if err != nil {
		m.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil
	}
	defer answer.Body.Close()
	var status struct {
		Tasks map[string]struct {
			Status *struct{ HA struct{ Leads bool } }
		}
	}
	if json.NewDecoder(answer.Body).Decode(&status) != nil {
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
	eventually(m.t, deliveryLimit, fmt.Sprintf("%d tasks are spread evenly", tasks)+m.said(), func() bool {
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

// TestI3I4I10TasksGoBetweenExporters that die, sleep and stop, and resources go between tasks when their number
// changes.
func TestI3I4I10TasksGoBetweenExporters(t *testing.T) {
	t.Parallel()
	m := newCrew(t, 3)
	m.play(t, number(t, "E2E_FAULTS", 1), 3, 2, 4, 1)
}

// kafkaTasksGoBetweenExporters is the same in Kafka, with both deliveries, where each resource keeps its topic.
func kafkaTasksGoBetweenExporters(t *testing.T, c *kafka.Cluster) {
	m := &crew{rig: newWorld(t, world{}), random: rand.New(rand.NewPCG(seed(t), 47)), kafka: c}
	m.file, m.worlds = nil, []*rig{m.rig}
	for _, s := range []kafkaSink{
		{name: "idempotent", prefix: "tasks.idempotent.", delivery: "idempotent", more: threeReplicas},
		{name: "transactional", prefix: "tasks.transactional.", delivery: "transactional", more: threeReplicas},
	} {
		m.topics = append(m.topics, followTopics(c, s, m.names()))
		m.sinks += s.config(c)
	}
	m.enlist(3, "transactional")
	m.play(t, number(t, "E2E_FAULTS", 0), 2, 3)
}

// quit ends the exporters, which is to be done well.
func (m *crew) quit() {
	m.t.Helper()
	for _, x := range m.all {
		if code, _, err := x.process.terminate(stopLimit); err != nil || code != 0 {
			m.t.Fatalf("%s ended with code %d, %v:\n%s", x.logPath, code, err, x.lastLines(m.t))
		}
	}
}

// TestI3I4I10ClustersAndTasksGoBetweenExporters: three exporters share the tasks of several clusters, which come and
// go, while they die, sleep and stop.
func TestI3I4I10ClustersAndTasksGoBetweenExporters(t *testing.T) {
	t.Parallel()
	fleetGoesBetween(t, nil, 2)
}

// kafkaClustersAndTasksGoBetweenExporters has both deliveries in Kafka, too.
func kafkaClustersAndTasksGoBetweenExporters(t *testing.T, c *kafka.Cluster) {
	fleetGoesBetween(t, c, 0)
}

// fleetGoesBetween three exporters. E2E_FAULTS is how many faults there are, instead of the usual number, and
// E2E_CLUSTERS how many clusters, of two tasks each.
func fleetGoesBetween(t *testing.T, c *kafka.Cluster, usual int) {
	many, faults := number(t, "E2E_CLUSTERS", 2), number(t, "E2E_FAULTS", usual)
	if faults == 0 {
		t.Skip("E2E_FAULTS is not set: make chaos sets it, and runs this")
	}
	m := &crew{random: rand.New(rand.NewPCG(seed(t), 48)), kafka: c}
	var inKafka []kafkaSink
	if c != nil {
		for _, delivery := range []string{"idempotent", "transactional"} {
			inKafka = append(inKafka, kafkaSink{name: delivery, prefix: "fleet.{cluster}." + delivery + ".", delivery: delivery, more: threeReplicas})
		}
	}
	for i := range many {
		r := newWorld(t, world{})
		if i == 0 {
			m.rig, r.broker = r, newBroker(t, r.dir)
		}
		name := string(rune('a' + i))
		r.file, r.broker = nil, m.broker
		r.stream = followStreams([]*streamLog{m.broker.openStream("K8S_" + name + "_1"), m.broker.openStream("K8S_" + name + "_2")})
		for _, s := range inKafka {
			s.prefix = strings.ReplaceAll(s.prefix, "{cluster}", name)
			r.topics = append(r.topics, followTopics(c, s, r.names()))
		}
		m.worlds, m.of = append(m.worlds, r), append(m.of, name)
		r.summon()
		r.writer.populate(t)
	}
	m.sinks = fmt.Sprintf("- {name: bus, nats: {url: %q, stream: 'K8S_{cluster}_{task}', subject: 'k8s.{cluster}.{task}.{group}.{resource}.{namespace}.{name}'}, resolved: {every: 1s}}\n",
		"nats://"+m.broker.address())
	for _, s := range inKafka {
		m.sinks += s.config(c)
	}
	m.enlist(3, "bus")
	m.sinks = strings.Replace(m.sinks, "lease: default/kubecdc", "lease: 'default/kubecdc-{cluster}'", 1)
	for _, x := range m.all {
		m.spread(x, 2, m.of...)
		x.start(t)
	}
	m.deliver()
	m.awaitBalance(2 * many)
	for _, r := range m.worlds {
		r.writer.start(t)
	}
	m.measure(2 * many)
	for n := range faults {
		m.suffer()
		if n%10 == 1 { // the last cluster goes, and comes back
			m.list(m.of[:many-1])
			m.deliver(m.worlds[:many-1]...)
			m.list(m.of)
		}
		if n%3 == 1 { // the others come before it is over
			m.deliver()
		}
	}
	m.awaitBalance(2 * many)
	for _, r := range m.worlds {
		r.writer.stop(t)
	}
	m.deliver()
	m.deliver()
	m.quit()
	t.Log(m.report())
	for _, r := range m.worlds {
		r.judge(false)
	}
}

// list has the exporters follow these clusters, without a restart.
func (m *crew) list(clusters []string) {
	m.t.Helper()
	for _, x := range m.all {
		m.spread(x, 2, clusters...)
	}
}

// measure prints how long it takes until others have the tasks of an exporter that dies, and of one that stops.
func (m *crew) measure(tasks int) {
	m.t.Helper()
	for what, end := range map[string]func(x *exporter){
		"died": func(x *exporter) { x.process.Kill() },
		"stopped": func(x *exporter) {
			if _, _, err := x.process.terminate(stopLimit); err != nil {
				m.t.Fatal(err)
			}
		},
	} {
		x := m.all[0]
		began := time.Now()
		end(x)
		m.awaitBalance(tasks)
		m.t.Logf("bench tasks.%s %.1f s (lease %s)", what, time.Since(began).Seconds(), lease)
		x.start(m.t)
		began = time.Now()
		eventually(m.t, deliveryLimit, "it has tasks again"+m.said(), func() bool { return len(m.has(x)) > 0 })
		m.awaitBalance(tasks)
		m.t.Logf("bench tasks.joined %.1f s", time.Since(began).Seconds())
	}
}

// play takes one number of tasks after the other, with so many faults at each.
func (m *crew) play(t *testing.T, faults int, numbers ...int) {
	t.Helper()
	m.summon()
	m.writer.populate(t)
	for at, tasks := range numbers {
		for _, x := range m.all {
			if x.runs() {
				if code, _, err := x.process.terminate(stopLimit); err != nil || code != 0 && !strings.Contains(x.lastLines(t), leavesRest) {
					t.Fatalf("%s ended with code %d, %v:\n%s", x.logPath, code, err, x.lastLines(t))
				}
			}
			m.spread(x, tasks)
			x.start(t)
		}
		if at == 0 {
			m.writer.start(t)
		}
		m.deliver()
		for range faults {
			m.suffer()
			m.deliver()
		}
		m.awaitBalance(tasks)
	}
	m.writer.stop(t)
	m.deliver()
	m.deliver()
	m.quit()
	m.judge(false)
}
