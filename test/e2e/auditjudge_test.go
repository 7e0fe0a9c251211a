package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// actorEvent is a line of the file: an actor, or a change.
type actorEvent struct {
	ID, Type, Name, UID, ResourceVersion, Change string
	Data                                         struct {
		Certainty, Op, Verb string
		User, Impersonated  struct{ Username string }
		SourceIPs           []string
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
	text, err := os.ReadFile(w.out())
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
	w.judgeMany(changes, actors)
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

// applies holds that an apply at a version that is over is refused: its version is a precondition like any other.
func (w *auditWorld) applies() {
	w.t.Helper()
	maps := w.admin.Resource(core("configmaps")).Namespace(auditNamespace)
	apply := func(version, value string) (*unstructured.Unstructured, error) {
		text := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"applied","resourceVersion":%q},"data":{"a":%q}}`, version, value)
		if version == "" {
			text = strings.Replace(text, `,"resourceVersion":""`, "", 1)
		}
		force := true
		return maps.Patch(w.t.Context(), "applied", types.ApplyPatchType, []byte(text), metav1.PatchOptions{FieldManager: "applier", Force: &force})
	}
	first, err := apply("", "1")
	if err != nil {
		w.t.Fatal(err)
	}
	second, err := apply(first.GetResourceVersion(), "2")
	if err != nil || second.GetResourceVersion() == first.GetResourceVersion() {
		w.t.Fatalf("an apply at the present version: %v", err)
	}
	for _, value := range []string{"2", "3"} { // whether it would change anything or not
		if _, err := apply(first.GetResourceVersion(), value); !apierrors.IsConflict(err) {
			w.t.Errorf("an apply of %s at a version that is over: %v", value, err)
		}
	}
}

// deletesMany deletes an object that a finalizer keeps, with others of its label, as a client that claims an address.
func (w *auditWorld) deletesMany() {
	w.t.Helper()
	labels := map[string]any{"many": "yes"}
	w.make(core("configmaps"), auditNamespace, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "free", "labels": labels}})
	w.make(core("configmaps"), auditNamespace, map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "kept", "labels": labels, "finalizers": []any{"example.org/keeps"}},
	})
	eventually(w.t, patience, "both are in the file", func() bool {
		text, err := os.ReadFile(w.out())
		return err == nil && strings.Contains(string(text), "configmaps/"+auditNamespace+"/free/") && strings.Contains(string(text), "configmaps/"+auditNamespace+"/kept/")
	})
	config := w.cluster.RESTConfig()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			r.Header.Set("X-Forwarded-For", claimedAddress)
			return next.RoundTrip(r)
		})
	})
	maps := connect(w.t, config).Resource(core("configmaps")).Namespace(auditNamespace)
	if err := maps.DeleteCollection(w.t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "many=yes"}); err != nil {
		w.t.Fatal(err)
	}
}

// claimedAddress is no client's: it is for documents.
const claimedAddress = "203.0.113.7"

// roundTripper is an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip is http.RoundTripper's.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// judgeMany holds what the record's schema and the page say of it: both objects are told as deleted, though one of them
// is there, and the address of the connection is the last one.
func (w *auditWorld) judgeMany(changes, actors []*actorEvent) {
	w.t.Helper()
	for name, op := range map[string]string{"free": "deleted", "kept": "updated"} {
		if !slices.ContainsFunc(changes, func(c *actorEvent) bool { return c.Name == name && c.Type == "dev.kubecdc."+op }) {
			w.t.Errorf("%s was not %s", name, op)
		}
		i := slices.IndexFunc(actors, func(a *actorEvent) bool { return a.Name == name && a.Data.Verb == "deletecollection" })
		if i < 0 {
			w.t.Errorf("nobody has deleted %s", name)
			continue
		}
		d := actors[i].Data
		if d.Op != "deleted" || d.Certainty != "possible" || !slices.Equal(d.SourceIPs, []string{claimedAddress, "127.0.0.1"}) {
			w.t.Errorf("of the delete of %s it is told that it is %s %s, by %q", name, d.Certainty, d.Op, d.SourceIPs)
		}
	}
	if slices.ContainsFunc(changes, func(c *actorEvent) bool { return c.Name == "kept" && c.Type == "dev.kubecdc.deleted" }) {
		w.t.Error("kept is told as deleted by a change, and is there")
	}
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
