package checkpoint

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

func TestI5StateSurvivesReopening(t *testing.T) {
	dir := t.TempDir() + "/a/b"
	s := open(t, dir)
	cluster := Cluster{Name: "prod\x00eu", UID: "8f2c"}
	must(t, s.SetCluster(cluster))
	must(t, commitNumbered(s, 1))
	must(t, save(s, "lake", `{"0":7}`))
	must(t, s.Close())

	s = open(t, dir)
	if got, found, err := s.Cluster(); err != nil || !found || got != cluster {
		t.Errorf("cluster %+v %v %v", got, found, err)
	}
	marks, err := s.Marks()
	if want := map[string]sink.Mark{"out": "1", "lake": `{"0":7}`}; err != nil || !maps.Equal(marks, want) {
		t.Errorf("marks %+v, want %+v (%v)", marks, want, err)
	}
	if n, err := wholeBatch(s); n != 1 || err != nil {
		t.Errorf("the state holds batch %d, %v", n, err)
	}
}

func TestI5NewStateKnowsNothing(t *testing.T) {
	s := open(t, t.TempDir())
	_, cluster, err1 := s.Cluster()
	names, err2 := s.KnownSinks()
	streams, err3 := s.KnownStreams()
	rows, err4 := s.HasRows("out", "pods", Others)
	for _, err := range []error{err1, err2, err3, err4} {
		must(t, err)
	}
	if cluster || rows || len(names)+len(streams) > 0 {
		t.Error("a new state knows something")
	}
	must(t, s.Commit(Batch{}))
}

// oddKeys are object names as some API servers allow them, more than a scan reads at once.
func oddKeys() []change.Key {
	keys := []change.Key{
		{Name: "node"}, {Name: "node-1"}, {Name: "node.1"}, {Name: "node:1"}, {Name: "system:node"}, {Name: "a b"}, {Name: "ä"},
		{Name: "\x00"}, {Name: "\xff\xff"}, {Name: "~"}, {Namespace: "a", Name: "b"}, {Namespace: "a-b", Name: "a"}, {Namespace: "a.b", Name: "a"},
		{Namespace: "a", Name: "\x01"}, {Namespace: "ä", Name: "ö\x00ü"}, {Name: "日本"}, {Namespace: "a", Name: strings.Repeat("n", 253)},
	}
	random := rand.New(rand.NewPCG(7, 8))
	alphabet := []rune("ab-.:~ \x00\x01äÿ")
	for range 3 * scanChunk {
		var b strings.Builder
		for range 6 + random.IntN(6) {
			b.WriteRune(alphabet[random.IntN(len(alphabet))])
		}
		keys = append(keys, change.Key{Namespace: []string{"", "a", "a-", "b"}[random.IntN(4)], Name: b.String()})
	}
	return keys
}

// TestI3ObjectsHaveTheServersOrder: a comparison merges them with a list sorted bytewise by the joined keys.
func TestI3ObjectsHaveTheServersOrder(t *testing.T) {
	s := open(t, t.TempDir())
	joined := map[string]bool{}
	var items []Item
	for i, key := range oddKeys() {
		item := told("pods", "", strconv.Itoa(i), i+1)
		item.Key = key
		items = append(items, item)
		joined[key.String()] = true
	}
	rand.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	must(t, save(s, "out", "1", items...))
	state, err := s.LoadSink("out")
	must(t, err)
	var got []string
	for row, err := range state.Objects("pods", Others, "") {
		must(t, err)
		got = append(got, row.Of.Key.String())
		if found, err := state.SavedRow(row.Of); err != nil || found != row.Row {
			t.Fatalf("the row of %v is %+v (%v), the scan has %+v", row.Of, found, err, row)
		}
	}
	if want := slices.Sorted(maps.Keys(joined)); !slices.Equal(got, want) {
		t.Fatalf("the scan gives %d keys in another order than the %d sorted ones", len(got), len(want))
	}
	if n, err := s.CountRows("out", "pods", Others); err != nil || n != len(joined) {
		t.Errorf("CountRows is %d, %v, want %d", n, err, len(joined))
	}
}

// TestI5ObjectsAreOfOneMoment: what is saved during a scan is not in it, and a scan that is broken off holds nothing.
func TestI5ObjectsAreOfOneMoment(t *testing.T) {
	s := open(t, t.TempDir())
	all := func(version int) (items []Item) {
		for i := range 3 * scanChunk {
			items = append(items, told("pods", fmt.Sprintf("%06d", i), "u", version))
		}
		return items
	}
	must(t, save(s, "out", "1", all(1)...))
	state, err := s.LoadSink("out")
	must(t, err)
	next, stop := iter.Pull2(s.Select([]string{"out"}, "pods", "", anyObject))
	defer stop()
	seen := 0
	for row, err := range state.Objects("pods", Others, "") {
		must(t, err)
		selected, err, more := next()
		if must(t, err); !more || row.At.Version != "1" || selected.At.Version != "1" {
			t.Fatalf("the scan sees a later save: %+v, %+v", row, selected)
		}
		if seen++; seen == 1 {
			must(t, save(s, "out", "2", all(2)...))
			must(t, s.Forget("out"))
		}
	}
	if seen != 3*scanChunk {
		t.Errorf("the scan gives %d objects, want %d", seen, 3*scanChunk)
	}
	for range state.Objects("pods", Others, "") {
		t.Error("the sink that is forgotten has objects")
	}
	must(t, save(s, "out", "3", all(3)...))
	for range state.Objects("pods", Others, "") {
		break
	}
}

// TestI10SinksAndResourcesAreKeptApart: none is another's prefix, whatever its name.
func TestI10SinksAndResourcesAreKeptApart(t *testing.T) {
	s := open(t, t.TempDir())
	sinkNames, resources := []string{"a", "a.b", "ab", "b"}, []string{"events", "events.events.k8s.io", "pods", "pods.metrics.k8s.io"}
	put := func(sinkName string) {
		var items []Item
		for _, resource := range resources {
			items = append(items, Item{Kind: Begin, Resource: resource, Scope: Others, At: Point{1, "1"}}, told(resource, "x", sinkName+resource, 2))
		}
		must(t, save(s, sinkName, sinkName, items...))
	}
	for _, sinkName := range sinkNames {
		put(sinkName)
	}
	for _, forgotten := range sinkNames {
		must(t, s.Forget(forgotten))
		for _, sinkName := range sinkNames {
			found, err := s.ResourcesOf(sinkName)
			must(t, err)
			if want := resources; sinkName == forgotten && len(found) > 0 || sinkName != forgotten && !slices.Equal(found, want) {
				t.Errorf("sink %s has %q after %s was forgotten", sinkName, found, forgotten)
			}
			for _, resource := range found {
				for row, err := range s.Select([]string{sinkName}, resource, "", anyObject) {
					if must(t, err); row.UID != sinkName+resource {
						t.Errorf("%s of sink %s has %+v", resource, sinkName, row)
					}
				}
			}
		}
		put(forgotten)
	}
}

// TestSelectIsAFilteredScan compares each query with all rows, filtered by hand, of two sinks in the order of the keys.
func anyObject(*SinkObject) bool { return true }

func TestSelectIsAFilteredScan(t *testing.T) {
	s := open(t, t.TempDir())
	for _, sinkName := range []string{"b", "a"} {
		var items []Item
		for i, key := range oddKeys() {
			item := told("pods", "", strconv.Itoa(i%700), i+1)
			item.Key = key
			items = append(items, item)
		}
		must(t, save(s, sinkName, "1", items...))
	}
	rows := func(namespace, uid string) (all []SinkRow) {
		keep := func(o *SinkObject) bool { return uid == "" || o.UID == uid }
		for row, err := range s.Select([]string{"b", "a"}, "pods", namespace, keep) {
			must(t, err)
			all = append(all, row)
		}
		return all
	}
	all := rows("", "")
	for i := 1; i < len(all); i++ {
		before, row := all[i-1], all[i]
		if cmp.Or(strings.Compare(before.Of.Key.String(), row.Of.Key.String()), strings.Compare(before.Sink, row.Sink)) >= 0 {
			t.Fatalf("%+v is before %+v", before, row)
		}
	}
	for _, namespace := range []string{"", "a", "a-", "b", "ä", "none", "a/b"} {
		for _, uid := range []string{"", "7", "70", "k"} {
			want := slices.DeleteFunc(slices.Clone(all), func(row SinkRow) bool {
				return namespace != "" && row.Of.Key.Namespace != namespace || uid != "" && row.UID != uid
			})
			if got := rows(namespace, uid); !slices.Equal(got, want) {
				t.Errorf("namespace %q, uid %q: %d rows, want %d", namespace, uid, len(got), len(want))
			}
		}
	}
}

func TestCompareCluster(t *testing.T) {
	saved := Cluster{Name: "a", UID: "1"}
	for now, want := range map[Cluster]bool{saved: false, {Name: "a", UID: "2"}: true} {
		if got, err := CompareCluster("/d", saved, now); err != nil || got != want {
			t.Errorf("%+v is %v, %v, want %v", now, got, err, want)
		}
	}
	_, err := CompareCluster("/d", saved, Cluster{Name: "b", UID: "1"})
	want := `state /d belongs to cluster "a" (uid 1), not to "b" (uid 1): choose another state.dir, or reset it with: exporter checkpoint reset --state-dir /d`
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
