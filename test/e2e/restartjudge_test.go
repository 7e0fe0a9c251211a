package e2e

import (
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// restartJudge judges what one sink was told over all lives of an exporter that is configured anew between them.
//
// It folds by key, as the documents say, and compares with the API server what the last settings select. What they do
// not select is as it was told last. Of every object it wants versions that never go back, and no id twice, unless the
// object left the sink and came back in between. Each record has the
// form that the rules of its life demand. That no version is missing, the simulation judges.
type restartJudge struct {
	findings
	histories map[string]*history
	lives     []life

	fold   map[string]*event // by kind and key: the newest, unless it is a delete
	newest map[string]*event // by uid
	turns  map[string]int    // by uid: how often it came and went
	ids    map[string]int    // the turn of each
}

func newRestartJudge(sink string, histories map[string]*history, lives []life) *restartJudge {
	return &restartJudge{
		findings: findings{sink: sink}, histories: histories, lives: lives,
		fold: map[string]*event{}, newest: map[string]*event{}, turns: map[string]int{}, ids: map[string]int{},
	}
}

// hear judges the records one after the other; of a key they are in order.
func (j *restartJudge) hear(events []event) {
	for i := range events {
		e := &events[i]
		if e.UID != "" {
			j.follow(e)
			j.judgeForm(e)
		}
		if turn, twice := j.ids[e.ID]; twice && turn == j.turns[e.UID] {
			j.fault("the id is there already:\n%s", e)
		}
		j.ids[e.ID] = j.turns[e.UID]
		j.note(e)
	}
}

// follow judges the record by those before it of its object. That each delete is told once, the simulation judges.
func (j *restartJudge) follow(e *event) {
	gone := e.op() == "deleted"
	before := j.newest[e.UID]
	if before == nil || (before.op() == "deleted") != gone {
		j.turns[e.UID]++
	}
	switch {
	case before == nil || gone:
	case e.version() < before.version():
		j.fault("the version goes back:\n%s\n%s", before, e)
	case e.version() == before.version() && e.op() != "sync" && before.op() != "deleted":
		j.fault("the version is told again:\n%s\n%s", before, e)
	}
}

// note makes the record the newest of its object and of its key.
func (j *restartJudge) note(e *event) {
	if e.UID == "" {
		return
	}
	key := foldedKey(e)
	if j.newest[e.UID], j.fold[key] = e, e; e.op() == "deleted" {
		delete(j.fold, key)
	}
}

func foldedKey(e *event) string { return e.kind() + " " + e.key() }

// strictness orders the forms of a mark: as it is, as a hash, and left out.
func strictness(rule string) int { return slices.Index([]string{"", "redact", "drop"}, rule) }

// judgeForm judges how the object was cut and redacted. What the exporter received in the record's own life has the
// form of that; what waited on disk may have been cut by stricter rules before.
func (j *restartJudge) judgeForm(e *event) {
	if len(e.Data) == 0 || e.FinalStateUnknown {
		return
	}
	var c content
	if err := json.Unmarshal(e.Data, &c); err != nil {
		j.fault("the data are no object: %v:\n%s", err, e)
		return
	}
	if _, made := j.histories[e.UID]; !made || !j.histories[e.UID].born {
		return // what is there from the start has no mark
	}
	life := j.lifeOf(e)
	want := life.rule
	if e.kind() != "configmaps" {
		want = ""
	}
	mark, marked := c.Metadata.Annotations[markAnnotation]
	have := ""
	switch {
	case !marked:
		have = "drop"
	case strings.HasPrefix(mark, "hmac-sha256:"):
		have = "redact"
	}
	if strictness(have) < strictness(want) || have != want && !e.Time.Before(life.began) {
		j.fault("the form is %q, and the rules of start %d demand %q:\n%s", have, life.number, want, e)
	}
	if h := j.histories[e.UID]; have == "" && e.op() != "deleted" {
		if i := h.find(e.version()); i < 0 || h.versions[i].mark != mark {
			j.fault("the mark is %s, the API server has %s:\n%s", mark, h, e)
		}
	}
}

// lifeOf is the one in which the record was written.
func (j *restartJudge) lifeOf(e *event) *life {
	for i := range slices.Backward(j.lives) {
		if j.lives[i].had[j.sink] < e.place {
			return &j.lives[i]
		}
	}
	return &j.lives[0]
}

// standing is an object that the API server has.
type standing struct{ kind, namespace, name, uid, version string }

// compare compares the fold with the cluster, as far as the settings give it to the sink.
func (j *restartJudge) compare(s *settings, cluster []standing) {
	expected := map[string]bool{}
	for _, o := range cluster {
		if !s.gives(j.sink, o.kind, o.namespace) {
			continue
		}
		key := o.kind + " " + joined(o.namespace, o.name)
		expected[key] = true
		if e := j.fold[key]; e == nil || e.UID != o.uid || e.ResourceVersion != o.version {
			j.fault("the API server has %s uid=%s rv=%s, the sink %v", key, o.uid, o.version, j.newestOf(o.uid))
		}
	}
	for key, e := range j.fold {
		if s.gives(j.sink, e.kind(), e.Namespace) && !expected[key] {
			j.fault("the API server does not have, or not select, what the sink has: %s", e)
		}
		if h := j.histories[e.UID]; h == nil || h.find(e.version()) < 0 {
			j.fault("a version that nobody made: %s", e)
		}
	}
}

// newestOf is the newest record of the object, for people.
func (j *restartJudge) newestOf(uid string) string {
	if e := j.newest[uid]; e != nil {
		return e.String()
	}
	return "nothing of it"
}

// selected is what the API server has of what the settings select by labels.
func (c *configured) selected(s *settings) (all []standing) {
	c.t.Helper()
	for _, resource := range c.rig.resources() {
		options := metav1.ListOptions{}
		if resource.Resource == "configmaps" {
			options.LabelSelector = s.selector
		}
		list, err := c.rig.client.Resource(resource).List(c.t.Context(), options)
		if err != nil {
			c.t.Fatal(err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			all = append(all, standing{kubectlName(resource), o.GetNamespace(), o.GetName(), string(o.GetUID()), o.GetResourceVersion()})
		}
	}
	return all
}
