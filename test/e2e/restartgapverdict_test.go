package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// gapTrial is what a sink was told in two lives of an object that is relabelled with each version. The first life
// selects everything, and the second app=web, after a gap from 4 to 6.
func gapTrial() *restartTrial {
	h := &history{resource: "configmaps", key: "shop/a", uid: "u1", born: true}
	for n, app := range []string{"web", "db", "web", "job", "web", "web", "db", "db", "web"} {
		h.versions = append(h.versions, version{uint64(n + 1), fmt.Sprint(n+1, " ", app)})
	}
	first, second := whole([]string{sinkFile}), whole([]string{sinkFile})
	second.selector = "app=web"
	t := &restartTrial{histories: map[string]*history{"u1": h}}
	t.lives = []life{{settings: first, number: 1, had: map[string]int{}}, {settings: second, number: 2, had: map[string]int{sinkFile: 6}}}
	t.frame("snapshot.begin", frame{ResourceVersion: "1", Reason: "initial"})
	for n := 1; n <= 4; n++ {
		t.tell("updated", "u1", n)
	}
	t.frame("snapshot.begin", frame{ResourceVersion: "4", Reason: "requested"})
	t.frame("gap", frame{LastDelivered: "4", ResourceVersion: "6", Reason: "stale"})
	t.tell("replaced", "u1", 6)
	t.tell("deleted", "u1", 7)
	t.tell("added", "u1", 9)
	return t
}

// frame appends a record of the stream.
func (t *restartTrial) frame(op string, f frame) {
	data, err := json.Marshal(f)
	if err != nil {
		panic(err)
	}
	place := len(t.events) + 1
	t.events = append(t.events, event{ID: fmt.Sprint(op, place), Type: "dev.kubecdc." + op, Resource: "configmaps", Data: data, place: place})
}

func (t *restartTrial) missing() string {
	j := newRestartJudge(sinkFile, t.histories, t.lives)
	j.hear(t.events)
	j.faults = nil // of what this trial does not have
	j.judgeMissing(t.lives[1].settings)
	return strings.Join(j.faults, "\n")
}

func TestRestartJudgeFindsWhatIsMissing(t *testing.T) {
	if faults := gapTrial().missing(); faults != "" {
		t.Error(faults)
	}
	for want, spoil := range map[string]func(*restartTrial){
		"version 3 is missing":                    func(t *restartTrial) { t.drop(4) },
		"version 9 is missing":                    func(t *restartTrial) { t.drop(10) },
		"version 5 is missing":                    func(t *restartTrial) { t.drop(7) },
		"version 7 is not selected any more":      func(t *restartTrial) { t.drop(9) },
		"version 5 is missing, and no gap covers": func(t *restartTrial) { t.events[6].Type = "dev.kubecdc.snapshot.begin" },
		"version 8 is missing":                    func(t *restartTrial) { t.lives[1].selector = "app!=job" },
	} {
		t.Run(want, func(t *testing.T) {
			spoiled := gapTrial()
			spoil(spoiled)
			if faults := spoiled.missing(); !strings.Contains(faults, want) {
				t.Errorf("the judge finds\n%s\nwant %q", faults, want)
			}
		})
	}
	other := gapTrial()
	other.lives[1].namespaces, other.events = []string{"mall"}, nil
	if faults := other.missing(); faults != "" {
		t.Errorf("what is not configured any more is wanted: %s", faults)
	}
}
