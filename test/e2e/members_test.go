package e2e

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// lease is the shortest that an exporter takes.
const lease = 2 * time.Second

// members are exporters that share a task.
type members struct {
	r    *rig
	all  []*exporter
	lead *exporter
}

// newMembers makes the rig's exporter one of several, with JetStream as their only sink.
func newMembers(r *rig, count int) *members {
	return newMembersOf(r, count, fmt.Sprintf("- {name: bus, nats: {url: %q, stream: %s}}\nstate: {log: {sink: bus}}\n",
		"nats://"+r.broker.address(), streamName))
}

// newMembersOf is newMembers with these sinks and the place of the state's log.
func newMembersOf(r *rig, count int, config string) *members {
	r.t.Helper()
	m := &members{r: r}
	for i := range count {
		x := r.newExporter(fmt.Sprintf("member%d", i))
		x.configure(r.t, config+fmt.Sprintf("ha: {lease: default/kubecdc, duration: %s}\n", lease))
		m.all = append(m.all, x)
	}
	r.file, r.exporter = nil, m.all[0]
	return m
}

func (m *members) start() {
	m.r.t.Helper()
	for _, x := range m.all {
		x.start(m.r.t)
	}
	m.awaitLeader(nil)
}

// awaitLeader returns when another one leads than the one given, which is not asked.
func (m *members) awaitLeader(but *exporter) {
	t := m.r.t
	t.Helper()
	defer func() {
		for _, x := range m.all {
			if t.Failed() {
				t.Logf("%s says:\n%s", x.logPath, x.lastLines(t))
			}
		}
	}()
	eventually(t, patience, "another exporter leads", func() bool {
		for _, x := range m.all {
			if x != but && x.runs() && x.leads(t) {
				m.lead, m.r.exporter = x, x
				return true
			}
		}
		return false
	})
}

// leads says whether the exporter says that it leads. One that is paused, or that begins or ends a term just now, may
// say nothing.
func (x *exporter) leads(t *testing.T) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+x.listen+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return err == nil && strings.Contains(clusterLabel.ReplaceAllString(string(body), "$1"), "kubecdc_leader{} 1")
}

// change does something to the leader, and returns when another one has taken over and has delivered.
func (m *members) change(how func(leader *exporter)) {
	t := m.r.t
	t.Helper()
	before := m.lead
	began := time.Now()
	how(before)
	m.awaitLeader(before)
	took := time.Since(began)
	m.r.stream.awaitMore(t, m.lead, len(m.r.stream.all(t))+20)
	t.Logf("took over after %s, delivers after %s", took.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
}

// TestI3I4I10OneOfTwoExportersLeads, whatever becomes of the other: killed, paused for longer than its Lease, and
// stopped. What the two have told is complete, in order, and once, and has no gap.
func TestI3I4I10OneOfTwoExportersLeads(t *testing.T) {
	r := newRig(t, nil)
	m := newMembers(r, 2)
	r.summon()
	r.writer.populate(t)
	m.start()
	r.streaming()
	r.writer.start(t)
	random := rand.New(rand.NewPCG(seed(t), 8000))
	faults := []func(*exporter){m.kill, m.pause, m.stop}
	for i := range number(t, "E2E_FAULTS", amount(6, 3)) {
		time.Sleep(time.Duration(random.Int64N(int64(300 * time.Millisecond)))) // any instant
		m.change(faults[i%len(faults)])
		m.revive()
	}
	r.settle()
	for _, x := range m.all {
		m.stop(x)
	}
	r.judge(false)
}

// kill kills the member. One that is started again at once goes on with its Lease.
func (m *members) kill(x *exporter) { x.process.Kill() }

// pause stops the member's world.
func (m *members) pause(x *exporter) { x.signal(m.r.t, syscall.SIGSTOP) }

// listens says whether the exporter answers connections. One that has just been started dies of a signal to stop.
func (x *exporter) listens() bool {
	conn, err := net.Dial("tcp4", x.listen)
	if err == nil {
		conn.Close()
	}
	return err == nil
}

// stop stops the member as a rolling update does.
func (m *members) stop(x *exporter) {
	m.r.t.Helper()
	eventually(m.r.t, patience, "the member listens", x.listens)
	if code, _, err := x.process.terminate(stopLimit); err != nil || code != 0 {
		m.r.t.Fatalf("the exporter ended with code %d, %v:\n%s", code, err, x.lastLines(m.r.t))
	}
}

// revive lets all members go on.
func (m *members) revive() {
	for _, x := range m.all {
		if x.runs() {
			x.signal(m.r.t, syscall.SIGCONT)
		} else {
			x.start(m.r.t)
		}
	}
}
