package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
)

// TestI5QuestionsOverNATSAreFollowedOnce: the exporter is killed while somebody asks and asks again until there is an
// answer. Each snapshot is given to its end, and asking for it again gives nothing more. A kill between an end and its
// saving may repeat that end, as that of any snapshot.
func TestI5QuestionsOverNATSAreFollowedOnce(t *testing.T) {
	r := newRig(t)
	r.exporter.args = append(r.exporter.args, "--cluster", "e2e")
	r.exporter.configure(t, fmt.Sprintf("- {name: bus, nats: {url: %q, stream: %s, service: {}}}\n- {name: file, file: {path: %q}}\n",
		"nats://"+r.broker.address(), streamName, r.path()))
	r.writer.populate(t)
	r.exporter.start(t)
	r.streaming()
	asker := r.newAsker()
	random := rand.New(rand.NewPCG(seed(t), 22))
	for i := range kills(t, 4) {
		selector := fmt.Sprintf("question=q%d", i)
		question := fmt.Sprintf(`{"id":"question-%d","resources":["configmaps"],"sink":"file","selector":%q}`, i, selector)
		exporter, over := r.exporter.process, make(chan struct{})
		time.AfterFunc(time.Duration(random.Int64N(int64(30*time.Millisecond))), func() { // any instant
			exporter.Kill()
			close(over)
		})
		asker.insist("snapshot", question)
		<-over
		r.restart()
		asker.insist("snapshot", question) // an asker that has not heard the answer
		asker.awaitNothingOwed()
		ends := limitedEnds(t, r.file)[selector]
		if ends < 1 || ends > 2 {
			t.Errorf("the snapshot of %s has %d ends, want 1, and another one at most for the kill", selector, ends)
		}
		asker.insist("snapshot", question)
		asker.awaitNothingOwed()
		if again := limitedEnds(t, r.file)[selector]; again != ends {
			t.Errorf("asked for again, the snapshot of %s has %d ends, want %d", selector, again, ends)
		}
	}
	r.settle()
	r.exporter.stop(t)
	r.judge(false)
}

// restart starts the exporter where it does not run.
func (r *rig) restart() {
	r.t.Helper()
	if !r.exporter.runs() {
		r.exporter.start(r.t)
	}
}

// limitedEnds is how many requested snapshots of each selector have ended.
func limitedEnds(t *testing.T, sink *follower) map[string]int {
	t.Helper()
	ends := map[string]int{}
	for _, e := range sink.all(t) {
		var frame struct{ Limits struct{ Selector string } }
		if e.op() != "snapshot.end" || e.Reason != "requested" {
			continue
		}
		if err := json.Unmarshal(e.Data, &frame); err != nil {
			t.Fatal(err)
		}
		ends[frame.Limits.Selector]++
	}
	return ends
}

// asker asks the exporter over NATS.
type asker struct {
	r  *rig
	nc *nats.Conn
}

func (r *rig) newAsker() *asker {
	r.t.Helper()
	nc, err := nats.Connect("nats://"+r.broker.address(), nats.Timeout(patience), nats.MaxReconnects(-1))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(nc.Close)
	return &asker{r, nc}
}

// awaitNothingOwed waits until every snapshot was given.
func (a *asker) awaitNothingOwed() {
	a.r.t.Helper()
	eventually(a.r.t, deliveryLimit, "nothing is owed", func() bool {
		var list struct{ Owed []any }
		return json.Unmarshal(a.insist("list", ""), &list) == nil && len(list.Owed) == 0
	})
}

// insist asks until there is an answer, from whatever life of the exporter. That it was done before is one.
func (a *asker) insist(name, question string) (answer []byte) {
	t := a.r.t
	t.Helper()
	eventually(t, patience, "there is an answer to "+name, func() bool {
		a.r.restart()
		got, err := a.nc.Request("kubecdc.e2e."+name, []byte(question), 2*time.Second)
		if err != nil {
			return false
		}
		answer = got.Data
		switch code := got.Header.Get(micro.ErrorCodeHeader); code {
		case "", "409":
			return true
		case "503":
			return false
		default:
			t.Fatalf("%s %s: %s %s", name, question, code, got.Data)
			return false
		}
	})
	return answer
}
