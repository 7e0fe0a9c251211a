package e2e

import (
	"encoding/json"
	"os"
	"strings"
)

// actorEvent is a line of the file: an actor, or a change.
type actorEvent struct {
	ID, Type, Name, UID, ResourceVersion, Change string
	Data                                         struct {
		Certainty, Op, Verb string
		User, Impersonated  struct{ Username string }
		Metadata            struct{ Annotations map[string]string }
	}
}

func (e *actorEvent) user() string {
	if e.Data.Impersonated.Username != "" {
		return e.Data.Impersonated.Username
	}
	return e.Data.User.Username
}

// read is what the sink has.
func (w *auditWorld) read() (changes, actors []*actorEvent) {
	w.t.Helper()
	text, err := os.ReadFile(w.path())
	if err != nil {
		w.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		e := &actorEvent{}
		if err := json.Unmarshal([]byte(line), e); err != nil {
			w.t.Fatalf("%v in %.300s", err, line)
		}
		if e.Type == "dev.kubecdc.actor" {
			actors = append(actors, e)
		} else {
			changes = append(changes, e)
		}
	}
	return changes, actors
}

// judge holds that no user is wrong who is called proven, and that no event that was not lost is missing.
func (w *auditWorld) judge() {
	w.t.Helper()
	changes, actors := w.read()
	states, ids := map[string]*actorEvent{}, map[string]*actorEvent{}
	for _, c := range changes {
		if c.UID != "" {
			states[c.UID+" "+c.ResourceVersion], ids[c.ID] = c, c
		}
	}
	count, wrong, seen, repeated := map[string]int{}, map[string]int{}, map[string]bool{}, 0
	told := map[string]bool{}
	for _, a := range actors {
		if seen[a.ID] {
			repeated++
			continue
		}
		seen[a.ID] = true
		told[claim(a.user(), a.UID, a.ResourceVersion)] = true
		count[a.Data.Certainty+" "+a.Data.Op]++
		if right, known := w.isRight(a, states); known && !right {
			wrong[a.Data.Certainty]++
			if a.Data.Certainty == "proven" {
				w.t.Errorf("%s is proven to be the one who made %s of %s, version %s, and is not", a.user(), a.Data.Op, a.Name, a.ResourceVersion)
			}
		}
		if a.Change != "" && states[a.UID+" "+a.ResourceVersion] != nil && ids[a.Change] == nil && !strings.HasSuffix(states[a.UID+" "+a.ResourceVersion].ID, "/replaced") {
			w.t.Errorf("actor %s names the change %s; the sink has it as %s", a.ID, a.Change, states[a.UID+" "+a.ResourceVersion].ID)
		}
	}
	w.judgeChanges(changes, actors)
	missing := 0
	for c, how := range w.claims {
		if told[c] || w.proxy.lost[c] || how == "nothing" || how == "hostile" || told[claim(strings.Fields(c)[0], strings.Fields(c)[1], "")] {
			continue
		}
		if missing++; missing < 10 {
			w.t.Errorf("no actor of %s: %s, sent %t", how, c, w.proxy.sent[c])
		}
	}
	w.t.Logf("%d changes, %d actors by certainty and operation %v; wrong by certainty %v; %d repeated; batches: %d repeated, %d failed, %d claims lost; %d claims, %d missing",
		len(changes), len(seen), count, wrong, repeated, w.proxy.repeated, w.proxy.failed, len(w.proxy.lost), len(w.claims), missing)
	if count["proven added"] == 0 || count["proven updated"] == 0 || count["proven deleted"] == 0 || count["possible updated"] == 0 {
		w.t.Errorf("too little was told: %v", count)
	}
}

// judgeChanges holds that every change has an actor, the right one among them where the object says who it is, or that
// the batch that would have told was lost.
func (w *auditWorld) judgeChanges(changes, actors []*actorEvent) {
	w.t.Helper()
	told, lost := map[string]map[string]bool{}, map[string]bool{}
	for _, a := range actors {
		state := stateOf(a.Data.Op, a)
		if told[state] == nil {
			told[state] = map[string]bool{}
		}
		told[state][a.user()] = true
	}
	for c := range w.proxy.lost {
		part := strings.SplitN(c, " ", 3)
		lost[part[1]+" "+part[2]], lost[part[1]] = true, true
	}
	have, without := 0, 0
	for _, c := range changes {
		op := strings.TrimPrefix(c.Type, "dev.kubecdc.")
		if op != "added" && op != "updated" && op != "deleted" || !strings.Contains(c.ID, "/"+auditNamespace+"/object-") {
			continue
		}
		state := stateOf(op, c)
		made := c.Data.Metadata.Annotations["by"]
		if user, known := w.truth[state]; known {
			made = user
		}
		switch users := told[state]; {
		case len(users) > 0 && (op != "added" || users[made]):
			have++
		case lost[state] || op == "deleted" && lost[c.UID]:
			without++
		default:
			w.t.Errorf("%s has the actors %v and was made by %s; no batch was lost that has it", c.ID, users, made)
		}
	}
	w.t.Logf("%d changes have an actor, and %d are known to have none", have, without)
}

// stateOf names what a change and its actor have in common. The version of a delete is not known to the audit.
func stateOf(op string, e *actorEvent) string {
	if op == "deleted" {
		return e.UID + " deleted"
	}
	return e.UID + " " + e.ResourceVersion
}

// isRight says whether the actor's user made the state, where that is known.
func (w *auditWorld) isRight(a *actorEvent, states map[string]*actorEvent) (right, known bool) {
	if a.Data.Op == "deleted" {
		for _, user := range w.gone[a.UID] {
			if user == a.user() {
				return true, true
			}
		}
		return false, a.Data.Certainty == "proven"
	}
	if a.Data.Verb == "" || !strings.Contains(a.ID, "/"+auditNamespace+"/") || !strings.HasPrefix(a.Name, "object-") {
		return false, false // the API server's own objects do not say who made them
	}
	if user, known := w.truth[a.UID+" "+a.ResourceVersion]; known {
		return user == a.user(), true
	}
	state := states[a.UID+" "+a.ResourceVersion]
	if state == nil || a.Data.Verb == "delete" {
		return false, a.Data.Verb == "delete" && a.Data.Certainty == "proven"
	}
	return state.Data.Metadata.Annotations["by"] == a.user(), true
}
