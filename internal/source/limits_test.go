package source

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// limited asks for a snapshot of a part of the pods.
func limited(l change.Limits) change.Owed {
	return change.Owed{Sink: "lake", Reason: change.Requested, Limits: l}
}

// elsewhere makes the inventory have an object of the namespace.
func (r *recorder) elsewhere(namespace, name, version string) {
	key := change.Key{Namespace: namespace, Name: name}
	r.objects[key.String()] = change.Entry{Key: key, UID: "uid-" + name, ResourceVersion: version}
}

// TestI4ALimitedSnapshotTellsOfNoOtherObjectThatItIsGone, and of one within its limits that it is.
func TestI4ALimitedSnapshotTellsOfNoOtherObjectThatItIsGone(t *testing.T) {
	for _, c := range []struct {
		name    string
		limits  change.Limits
		deletes []string // besides what every snapshot tells
	}{
		{"all", change.Limits{}, []string{"deleted b 20 unseen", "deleted a-lies 5 unseen", "deleted o-lies 5 unseen", "deleted a 7 unseen"}},
		{"namespace", change.Limits{Namespace: "n"}, []string{"deleted b 20 unseen"}},
		{"selector", change.Limits{Selector: "app=web"}, nil},
		{"selector in a namespace", change.Limits{Namespace: "n", Selector: "app=web"}, nil},
		{"name", change.Limits{Name: "a"}, []string{"deleted a 7 unseen"}},
		{"name in a namespace", change.Limits{Namespace: "n", Name: "a"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := script(t, 100)
			pods, asked := []string{"a 10", "changed 25", "new 30"}, url.Values{}
			if c.limits.Name != "" {
				pods = pods[:1]
			}
			answer := func(q url.Values) (int, string) {
				asked = q
				return http.StatusOK, podList(100, "", pods...)
			}
			server.list, server.look = answer, answer
			r := newRecorder("a 10", "b 20", "changed 15")
			r.elsewhere("m", "a-lies", "5")
			r.elsewhere("o", "o-lies", "5")
			r.elsewhere("o", "a", "7")
			server.start(r, at(100)).Request(limited(c.limits))
			got := strings.Split(r.wait(t, "snapshot.end 100 requested to lake"), "\n")
			expect := append([]string{"snapshot.begin 100 requested to lake", "sync a 10 to lake", "snapshot.end 100 requested to lake"}, c.deletes...)
			if c.limits.Name == "" {
				expect = append(expect, "replaced changed 25", "replaced new 30")
			}
			slices.Sort(got)
			slices.Sort(expect)
			want(t, "records", strings.Join(got, "\n"), expect...)
			if asked.Get("labelSelector") != c.limits.Selector || c.limits.Name != "" && asked.Get("fieldSelector") != "metadata.name=a" {
				t.Errorf("asked for %v", asked)
			}
			if path := server.asked(); c.limits.Name != "" && strings.Contains(path, "namespaces/n/pods a 100") != (c.limits.Namespace != "") {
				t.Errorf("requests are %s", path)
			}
		})
	}
}

// TestALimitedListIsAsManyPagesAsItHas, and its order is proven by the tokens of its own range.
func TestALimitedListIsAsManyPagesAsItHas(t *testing.T) {
	server := script(t, 100)
	names := manyPods(6)
	at1 := rangeToken(100, "p002") // the keys of a namespace's list have none
	server.list = func(q url.Values) (int, string) {
		if q.Get("continue") == "" {
			return http.StatusOK, podList(100, at1, names[:3]...)
		}
		return http.StatusOK, podList(100, "", names[3:]...)
	}
	r := newRecorder(append(names, "p0035 7", "q 9")...)
	r.elsewhere("z", "z", "1")
	server.start(r, at(100)).Request(limited(change.Limits{Namespace: "n"}))
	lines := r.wait(t, "snapshot.end 100 requested to lake")
	if strings.Count(lines, "sync ") != 6 || strings.Count(lines, "deleted ") != 2 || strings.Contains(lines, "deleted z") {
		t.Errorf("records are\n%s", lines)
	}
	if r.after["lake"] != "n/p005" {
		t.Errorf("it is said to have come to %q", r.after["lake"])
	}
}

// TestSnapshotsOfOtherLimitsShareNoList.
func TestSnapshotsOfOtherLimitsShareNoList(t *testing.T) {
	a := dueQueue{}
	all, one, same := limited(change.Limits{}), limited(change.Limits{Namespace: "n"}), limited(change.Limits{Namespace: "n"})
	same.Sink = "bus"
	for _, owed := range []change.Owed{one, all, same, one} {
		a.add(owed)
	}
	if got := a.begin(); !slices.Equal(got, []change.Owed{one, same}) {
		t.Errorf("first begin %+v", got)
	}
	a.done(false)
	if got := a.begin(); !slices.Equal(got, []change.Owed{all}) {
		t.Errorf("then begin %+v", got)
	}
}

// TestALimitedListWithoutAnOrderIsComparedByItsKeys.
func TestALimitedListWithoutAnOrderIsComparedByItsKeys(t *testing.T) {
	for limits, wantGone := range map[change.Limits]string{
		{Namespace: "a"}: "a/gone", {Name: "gone"}: "a/gone b/gone", {Selector: "x"}: "", {Namespace: "a", Name: "gone"}: "a/gone", {Namespace: "a", Name: "x"}: "",
	} {
		m := newMerge(inventoryOf{"a-b/x", "a/gone", "a/x", "a/y", "b/gone"}, "pods", true)
		m.limit(limits)
		found, gone, err := mergeAll(m, []string{"a/y", "a/x"})
		if err != nil || strings.Join(found, " ") != "a/y a/x" || strings.Join(gone, " ") != wantGone {
			t.Errorf("%v: found %q, gone %q, %v", limits, found, gone, err)
		}
	}
}

func TestLimitsAreWithinTheSelection(t *testing.T) {
	configured := Selection{LabelSelector: "a=b", FieldSelector: "status.phase=Running"}
	got := configured.within(change.Limits{Selector: "c in (d,e)", Name: "x,y=z\\"})
	if got.LabelSelector != "a=b,c in (d,e)" || got.FieldSelector != `status.phase=Running,metadata.name=x\,y\=z\\` {
		t.Errorf("selected is %+v", got)
	}
	if got := configured.within(change.Limits{Namespace: "n"}); got != configured {
		t.Errorf("selected is %+v", got)
	}
}
