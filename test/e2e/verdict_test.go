package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// trial is a sink's events and what the API server stored: an object that is born and deleted, and one that was there
// before. The watch follows a first list at 11.
type trial struct {
	histories map[string]*history
	events    []event
	gaps      bool
	drift     bool
	cluster   string
	inherited map[string]told
}

func newTrial() *trial {
	t := &trial{histories: map[string]*history{
		"u1": {resource: "configmaps", key: "shop/a", uid: "u1", born: true, gone: true, deletion: 18,
			versions: []version{{10, "x"}, {12, "y"}, {15, "z"}}},
		"u2": {resource: "configmaps", key: "shop/b", uid: "u2", versions: []version{{5, ""}, {13, "v"}}},
	}}
	t.tell("snapshot.begin", "", 11, "initial")
	t.tell("replaced", "u1", 10, "initial")
	t.tell("replaced", "u2", 5, "initial")
	t.tell("snapshot.end", "", 11, "initial")
	t.tell("updated", "u1", 12, "")
	t.tell("updated", "u2", 13, "")
	t.tell("updated", "u1", 15, "")
	t.tell("deleted", "u1", 18, "")
	return t
}

// tell appends an event as the exporter writes it. Where there is a reason, it belongs to a reconcile.
func (t *trial) tell(op, uid string, version uint64, reason string) {
	e := event{
		ID: fmt.Sprint("c/", uid, "/", version, "/", op), Type: "dev.kubecdc." + op, Resource: "configmaps", UID: uid,
		ResourceVersion: fmt.Sprint(version), Reason: reason, Source: "/clusters/dev", Namespace: "shop",
	}
	if reason != "" {
		e.Snapshot = "s-" + reason
	}
	data := any(frame{ResourceVersion: e.ResourceVersion, Reason: reason, LastDelivered: "11"})
	if h := t.histories[uid]; h != nil {
		_, e.Name, _ = strings.Cut(h.key, "/")
		mark := h.last().mark
		if i := h.find(version); i >= 0 {
			mark = h.versions[i].mark
		}
		data = map[string]any{"kind": "ConfigMap", "apiVersion": "v1", "metadata": map[string]any{
			"name": e.Name, "namespace": "shop", "uid": uid, "resourceVersion": e.ResourceVersion,
			"annotations": map[string]string{markAnnotation: mark},
		}}
	} else if uid == "" {
		e.Namespace = ""
	}
	e.Data, _ = json.Marshal(data)
	t.events = append(t.events, e)
}

// find is the index of the event.
func (t *trial) find(op string, version uint64) int {
	return slices.IndexFunc(t.events, func(e event) bool { return e.op() == op && e.version() == version })
}

// drop takes the event out.
func (t *trial) drop(op string, version uint64) {
	i := t.find(op, version)
	t.events = slices.Delete(t.events, i, i+1)
}

// gone puts a gap after the first list, whose reconcile at 14 replaces the versions.
func (t *trial) gone(replaced ...func()) {
	t.gaps = true
	watched := slices.Clone(t.events[4:])
	t.events = t.events[:4]
	t.tell("gap", "", 14, "gone")
	t.tell("snapshot.begin", "", 14, "gone")
	for _, tell := range replaced {
		tell()
	}
	t.tell("snapshot.end", "", 14, "gone")
	t.events = append(t.events, watched...)
	t.drop("updated", 12)
	t.drop("updated", 13)
}

func (t *trial) faults() string {
	for i := range t.events {
		t.events[i].place = i + 1
	}
	j := newJudge("trial", t.histories, t.gaps)
	j.drift, j.cluster, j.inherited = t.drift, t.cluster, t.inherited
	j.hear(t.events)
	return strings.Join(j.faults, "\n")
}

func TestJudgeAcceptsWhatIsRight(t *testing.T) {
	for name, right := range map[string]func(*trial){
		"as it is":  func(*trial) {},
		"resolved":  func(t *trial) { t.resolve(14, 6); t.resolve(18, 9) },
		"corrected": func(t *trial) { t.drift = true; t.correct() },
		"an epoch":  func(t *trial) { *t = *newEpochTrial() },
		"mended": func(t *trial) {
			t.gone(func() { t.tell("replaced", "u1", 12, "gone") }, func() { t.tell("replaced", "u2", 13, "gone") })
		},
		"it goes on": func(t *trial) { t.goOn(14, "initial") },
		"overtaken": func(t *trial) { // by the watch, before the snapshot after the gap came to the object
			t.gone(func() { t.tell("replaced", "u2", 13, "gone") }, func() { t.tell("updated", "u1", 15, "") })
			t.events = slices.Delete(t.events, len(t.events)-2, len(t.events)-1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			one := newTrial()
			right(one)
			if faults := one.faults(); faults != "" {
				t.Error(faults)
			}
		})
	}
}

// A reconcile names what was told last of the object, and nothing older.
func TestJudgeAcceptsADeleteThatNamesWhatWasToldLast(t *testing.T) {
	for version, want := range map[uint64]string{14: "", 12: "", 11: "the delete names version 11"} {
		c := newTrial()
		h := c.histories["u1"]
		h.versions, h.deletion = h.versions[:2], 14
		c.events = append(c.events[:4:4], c.events[4])
		c.tell("updated", "u2", 13, "")
		c.tell("gap", "", 14, "gone")
		c.tell("snapshot.begin", "", 14, "gone")
		c.tell("deleted", "u1", version, "gone")
		c.events[len(c.events)-1].FinalStateUnknown = true
		c.tell("snapshot.end", "", 14, "gone")
		c.gaps = true
		if faults := c.faults(); !strings.Contains(faults, want) || want == "" && faults != "" {
			t.Errorf("version %d: the judge finds\n%s\nwant %q", version, faults, want)
		}
	}
}

// spoiled finds with each of the judge's trials what was spoiled in it.
func spoiled[T interface{ faults() string }](t *testing.T, fresh func() T, trials map[string]func(T)) {
	t.Helper()
	for want, spoil := range trials {
		t.Run(want, func(t *testing.T) {
			one := fresh()
			spoil(one)
			if faults := one.faults(); !strings.Contains(faults, want) {
				t.Errorf("the judge finds\n%s\nwant %q", faults, want)
			}
		})
	}
}

func TestJudgeFindsWhatIsWrong(t *testing.T) {
	spoiled(t, newTrial, map[string]func(*trial){
		"version 12 is missing":                      func(t *trial) { t.drop("updated", 12) },
		"version 15 is missing":                      func(t *trial) { t.drop("updated", 15) },
		"version 5 is missing, and was in the list":  func(t *trial) { t.drop("replaced", 5) },
		"0 deletes of an object that is gone: true":  func(t *trial) { t.drop("deleted", 18) },
		"1 deletes of an object that is gone: false": func(t *trial) { t.tell("deleted", "u2", 19, "") },
		"the id is at place 5 already":               func(t *trial) { t.events = append(t.events, t.events[4]) },
		"version 12 follows version 12":              func(t *trial) { t.events = slices.Insert(t.events, 5, t.events[4]) },
		"version 12 follows version 15":              func(t *trial) { t.events[4], t.events[6] = t.events[6], t.events[4] },
		"not newer than the position 15":             func(t *trial) { t.events[5], t.events[6] = t.events[6], t.events[5] },
		"an event follows the delete":                func(t *trial) { t.events[6], t.events[7] = t.events[7], t.events[6] },
		"version 14 was never stored":                func(t *trial) { t.tell("updated", "u2", 14, "") },
		"an object that nobody made":                 func(t *trial) { t.tell("added", "u3", 20, "") },
		"version 12 is added":                        func(t *trial) { t.drop("updated", 12); t.tell("added", "u1", 12, "") },
		"the delete is version 17":                   func(t *trial) { t.drop("deleted", 18); t.tell("deleted", "u1", 17, "") },
		"that no reconcile found":                    func(t *trial) { t.events[7].FinalStateUnknown = true },
		"version 10 is replaced by a list at 12":     func(t *trial) { t.events[0].Data = []byte(`{"resourceVersion":"12","reason":"initial"}`) },
		"stands outside it":                          func(t *trial) { t.drop("snapshot.begin", 11) },
		"ends within a reconcile or a gap":           func(t *trial) { t.drop("snapshot.end", 11) },
		"and no reconcile":                           func(t *trial) { t.events = t.events[4:] },
		"before the first reconcile, which is of":    func(t *trial) { t.events = append(t.events[4:5:5], t.events...) },
		"ends within a reconcile":                    func(t *trial) { t.tell("snapshot.begin", "", 18, "requested") },
		"the data are of another object":             func(t *trial) { t.events[4].Data = t.events[5].Data },
		`version 12 says "z", want "y"`:              func(t *trial) { t.histories["u1"].versions[1].mark = "y"; t.remark(4, "z") },
		"the header says other":                      func(t *trial) { t.events[4].header = "other" },
		"the subject is k8s.dev.core.pods.shop.a":    func(t *trial) { t.events[4].routed = "k8s.dev.core.pods.shop.a" },
		"nobody asked for":                           func(t *trial) { t.tell("bookmark", "", 20, "") },
		"and nothing was lost":                       func(t *trial) { t.gone(); t.gaps = false },
		"version 12 is missing, and was in the list": func(t *trial) { t.gone(func() { t.tell("replaced", "u2", 13, "gone") }) },
		"an object of a reconcile stands outside it": func(t *trial) { t.correct() },
		"version 13 is missing":                      func(t *trial) { t.drift = true; t.correct(); t.drop("replaced", 13); t.resync(18) },
		"version 15 is missing, and was in":          func(t *trial) { t.drop("updated", 15); t.drift = true; t.resync(17) },
		"of version 11 goes on at version 9":         func(t *trial) { t.drop("snapshot.end", 11); t.tell("snapshot.begin", "", 9, "initial") },
		"version 13 is missing; version 13":          func(t *trial) { t.goOn(14, "initial"); t.drop("updated", 13) },
		"no gap was announced":                       func(t *trial) { t.gone(); t.drop("gap", 14) },
		"resolved comes before version 15 of what":   func(t *trial) { t.resolve(15, 6) },
		"resolved comes before version 15 of":        func(t *trial) { t.resolve(18, 7) },
	})
}

// goOn lets a kill interrupt the first snapshot. The next life goes on at the version, beside the watch.
func (t *trial) goOn(version uint64, reason string) {
	t.drop("snapshot.end", 11)
	begin := t.find("updated", 15)
	rest := slices.Clone(t.events[begin:])
	t.events = t.events[:begin]
	t.tell("snapshot.begin", "", version, reason)
	t.events = append(t.events, rest...)
	t.tell("snapshot.end", "", version, reason)
}

// correct lets the watch lose an update, and a resync of another sink find it.
func (t *trial) correct() {
	t.drop("updated", 13)
	t.tell("replaced", "u2", 13, "resync")
}

// resync adds a full snapshot without any object.
func (t *trial) resync(version uint64) {
	t.tell("snapshot.begin", "", version, "resync")
	t.tell("snapshot.end", "", version, "resync")
}

// newEpochTrial is what follows a history in which u2 was the same, u3 was newer, and u9 was. The reconcile is at 20.
func newEpochTrial() *trial {
	had := func(uid string, version uint64) told {
		return told{event: event{Type: "dev.kubecdc.updated", UID: uid, ResourceVersion: fmt.Sprint(version)}}
	}
	t := &trial{
		gaps: true, cluster: "c",
		histories: map[string]*history{
			"u2": {resource: "configmaps", key: "shop/b", uid: "u2", versions: []version{{5, ""}, {13, "v"}}},
			"u3": {resource: "configmaps", key: "shop/c", uid: "u3", versions: []version{{14, "w"}}},
		},
		inherited: map[string]told{"u2": had("u2", 13), "u3": had("u3", 25), "u9": had("u9", 30)},
	}
	t.tell("gap", "", 20, "epoch")
	t.tell("snapshot.begin", "", 20, "epoch")
	t.tell("replaced", "u3", 14, "epoch")
	t.tell("replaced", "u2", 13, "epoch")
	t.tell("deleted", "u9", 30, "epoch")
	t.events[4].FinalStateUnknown = true
	t.tell("snapshot.end", "", 20, "epoch")
	return t
}

func TestJudgeKnowsTheHistoryBefore(t *testing.T) {
	spoiled(t, newEpochTrial, map[string]func(*trial){
		"the id is of another cluster":        func(t *trial) { t.cluster = "d" },
		"must be deleted once by the epoch's": func(t *trial) { t.drop("deleted", 30) },
		"version 14 is missing":               func(t *trial) { t.drop("replaced", 14) },
		"version 13 is missing":               func(t *trial) { t.drop("replaced", 13) },
		"no gap was announced":                func(t *trial) { t.drop("gap", 20) },
		"within a reconcile": func(t *trial) {
			t.tell("updated", "u2", 26, "")
			t.events = append(t.events[:2], t.events[6], t.events[2])
		},
		"0 deletes of an object that is gone": func(t *trial) { t.histories["u2"].gone = true },
	})
}

// TestJudgeAllowsSharedVersionsOfExpiredEventsOnly: nothing else may follow a record at its version.
func TestJudgeAllowsSharedVersionsOfExpiredEventsOnly(t *testing.T) {
	for resource, want := range map[string]bool{"events": true, "pods": false} {
		c := &course{spans: []span{{to: 5}}, position: 5}
		first, second := event{Type: "dev.kubecdc.deleted", Resource: resource, ResourceVersion: "9"}, event{Type: "dev.kubecdc.deleted", Resource: resource, ResourceVersion: "9"}
		if err := c.take(&first); err != nil {
			t.Fatal(err)
		}
		if err := c.take(&second); (err == nil) != want {
			t.Errorf("a second delete of %s at the version: %v, want it allowed: %v", resource, err, want)
		}
	}
}

// resolve says in the place that everything up to the version is before it.
func (t *trial) resolve(version uint64, place int) {
	t.tell("resolved", "", version, "")
	last := len(t.events) - 1
	t.events = slices.Insert(t.events[:last:last], place, t.events[last])
}

// remark changes what the writer is said to have written.
func (t *trial) remark(i int, mark string) {
	e := &t.events[i]
	var c map[string]any
	if json.Unmarshal(e.Data, &c) == nil {
		c["metadata"].(map[string]any)["annotations"] = map[string]any{markAnnotation: mark}
		e.Data, _ = json.Marshal(c)
	}
}

func TestSinksThatDisagreeAreFound(t *testing.T) {
	one, other := newTrial(), newTrial()
	other.drop("updated", 13)
	judges := map[*trial]*judge{}
	for _, sides := range []*trial{one, other} {
		judges[sides] = newJudge("trial", sides.histories, false)
		judges[sides].hear(sides.events)
	}
	if found := disagreement(judges[one], judges[one]); len(found) > 0 {
		t.Errorf("a sink disagrees with itself: %s", found)
	}
	if found := disagreement(judges[one], judges[other]); len(found) != 1 || !strings.Contains(found[0], "record 1 of the watch") {
		t.Errorf("found is %q", found)
	}
}
