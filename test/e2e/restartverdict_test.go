package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// restartTrial is what a sink was told in two lives: of an object that stays, one that is deleted, and one that leaves
// a selector and comes back unchanged. In the second life the mark is redacted.
type restartTrial struct {
	histories map[string]*history
	lives     []life
	events    []event
	cluster   []standing
}

// restartEpoch is when the second life of a trial began.
func restartEpoch() time.Time { return time.Unix(1000, 0) }

func newRestartTrial() *restartTrial {
	t := &restartTrial{histories: map[string]*history{}}
	for uid, name := range map[string]string{"u1": "stays", "u2": "goes", "u3": "returns", "u4": "goes"} {
		t.histories[uid] = &history{resource: "configmaps", key: "shop/" + name, uid: uid, born: true}
		for n := range 30 {
			t.histories[uid].versions = append(t.histories[uid].versions, version{uint64(n), fmt.Sprint("m", n)})
		}
	}
	first, second := whole([]string{sinkFile}), whole([]string{sinkFile})
	second.rule = "redact"
	t.lives = []life{{settings: first, number: 1, had: map[string]int{}}, {settings: second, number: 2, began: restartEpoch(), had: map[string]int{sinkFile: 4}}}
	for _, told := range []struct {
		op, uid string
		version int
	}{
		{"added", "u1", 1}, {"added", "u2", 2}, {"added", "u3", 3}, {"updated", "u2", 4},
		{"unseen", "u3", 3}, {"deleted", "u2", 6}, {"added", "u4", 7}, {"replaced", "u3", 3}, {"updated", "u1", 8}, {"unseen", "u3", 3}, {"replaced", "u3", 3},
	} {
		t.tell(told.op, told.uid, told.version)
	}
	t.cluster = []standing{{"configmaps", "shop", "stays", "u1", "8"}, {"configmaps", "shop", "goes", "u4", "7"}, {"configmaps", "shop", "returns", "u3", "3"}}
	return t
}

// tell appends a record as the exporter writes it in the life.
func (t *restartTrial) tell(op, uid string, version int) {
	_, name, _ := strings.Cut(t.histories[uid].key, "/")
	e := event{
		Type: "dev.kubecdc." + op, Resource: "configmaps", Namespace: "shop", Name: name, UID: uid, ResourceVersion: fmt.Sprint(version),
		place: len(t.events) + 1, Time: restartEpoch().Add(-time.Second),
	}
	mark := fmt.Sprint("m", version)
	if e.place > t.lives[1].had[sinkFile] {
		mark, e.Time = "hmac-sha256:"+mark, restartEpoch().Add(time.Second)
	}
	if op == "unseen" {
		e.Type, e.FinalStateUnknown = "dev.kubecdc.deleted", true
	} else {
		e.Data = marked(mark)
	}
	e.ID = fmt.Sprint(uid, "/", version, "/", e.op())
	t.events = append(t.events, e)
}

func marked(mark string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, markAnnotation, mark))
}

func (t *restartTrial) faults() string {
	j := newRestartJudge(sinkFile, t.histories, t.lives)
	j.hear(t.events)
	j.compare(t.lives[1].settings, t.cluster)
	return strings.Join(j.faults, "\n")
}

func TestRestartJudgeFindsWhatIsWrong(t *testing.T) {
	if faults := newRestartTrial().faults(); faults != "" {
		t.Error(faults)
	}
	spoiled(t, newRestartTrial, map[string]func(*restartTrial){
		"the API server has configmaps shop/stays uid=u1 rv=9": func(t *restartTrial) { t.cluster[0].version = "9" },
		"the API server does not have":                         func(t *restartTrial) { t.cluster = t.cluster[1:] },
		"the version goes back":                                func(t *restartTrial) { t.tell("updated", "u1", 7) },
		"the version is told again":                            func(t *restartTrial) { t.tell("replaced", "u1", 8) },
		"the id is there already":                              func(t *restartTrial) { t.tell("updated", "u1", 8) },
		"demand \"redact\"":                                    func(t *restartTrial) { t.events[8].Data = marked("m8") },
		"the form is \"drop\"":                                 func(t *restartTrial) { t.events[8].Data = json.RawMessage(`{"metadata":{}}`) },
		"the mark is m2, the API server has":                   func(t *restartTrial) { t.events[0].Data = marked("m2") },
		"a version that nobody made":                           func(t *restartTrial) { t.tell("updated", "u1", 99) },
	})
}

// TestRestartJudgeKnowsWhatWaitedOnDisk: it was cut by stricter rules before.
func TestRestartJudgeKnowsWhatWaitedOnDisk(t *testing.T) {
	waited := newRestartTrial()
	waited.events[8].Data, waited.events[8].Time = json.RawMessage(`{"metadata":{}}`), restartEpoch().Add(-time.Second)
	if faults := waited.faults(); faults != "" {
		t.Error(faults)
	}
}
