package checkpoint

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kubecdc/kubecdc/internal/change"
)

// in is the stream of pods in a namespace, "" is all.
func in(namespace string) change.Stream {
	return change.Stream{Resource: pods.Resource, Namespace: namespace}
}

// pod is a record of a pod, of the stream.
func pod(stream change.Stream, op change.Op, namespace, name, version string) *change.Record {
	return &change.Record{
		Stream: &stream, Op: op, Key: change.Key{Namespace: namespace, Name: name}, UID: "uid-" + name, ResourceVersion: version,
		Position: change.Position{ResourceVersion: version, Complete: true, Epoch: "e", Selector: "app=x"},
	}
}

// known is what the state knows of a stream: its position and its objects.
func known(t *testing.T, s *Store, stream string) string {
	t.Helper()
	position, _, err := s.Position(stream)
	must(t, err)
	text := position.ResourceVersion + position.Selector
	for _, entry := range scan(t, s, stream) {
		text += fmt.Sprint(" ", entry.Key, "@", entry.ResourceVersion)
	}
	return text
}

func wantKnown(t *testing.T, s *Store, stream, want string) {
	t.Helper()
	if got := known(t, s, stream); got != want {
		t.Errorf("of %s the state knows %q, want %q", stream, got, want)
	}
}

func inherit(t *testing.T, s *Store, stream change.Stream, want ...string) {
	t.Helper()
	from, err := s.Inherit(stream)
	must(t, err)
	if !slices.Equal(from, want) {
		t.Errorf("%s inherits from %q, want %q", stream, from, want)
	}
}

// fillAll makes a state in which all pods are read: for a sink that is there and one that is absent, and in which a
// snapshot is owed.
func fillAll(t *testing.T, s *Store) {
	t.Helper()
	all := in("")
	a, b := pod(all, change.Added, "shop", "a", "5"), pod(all, change.Added, "shopping", "b", "6")
	a.Keep, a.Object = true, []byte(`{}`)
	must(t, s.KeepObjects("pods", []byte("form")))
	must(t, s.Commit(Batch{
		Records: []*change.Record{a, b, pod(all, change.Added, "shop", "c", "7"), pod(all, change.Added, "shop", "d", "8")},
		Taken:   []Subscription{{"lake", "pods"}, {"out", "pods"}}, PendingSnapshots: []PendingSnapshot{owe("lake", "pods", change.NewSink)},
		Based: map[Subscription]change.Position{{"lake", "pods"}: {ResourceVersion: "4", Epoch: "e"}},
	}))
	must(t, s.Commit(Batch{Absent: []Absence{{Subscription: Subscription{"out", "pods"}, Since: time.UnixMilli(7)}}}))
	must(t, s.Commit(Batch{Records: []*change.Record{pod(all, change.Deleted, "shop", "d", "9"), pod(all, change.Added, "shop", "e", "10")}}))
}

// TestI5StreamOfANamespaceGoesOnWhereThatOfAllWas: it has the position and all that is known of its objects; the others
// stay where they are.
func TestI5StreamOfANamespaceGoesOnWhereThatOfAllWas(t *testing.T) {
	s := open(t, t.TempDir())
	fillAll(t, s)
	inherit(t, s, in("shop"), "pods")
	wantKnown(t, s, "shop/pods", "10app=x shop/a@5 shop/c@7 shop/e@10")
	wantKnown(t, s, "pods", "10app=x shopping/b@6")
	subscriptions, err := s.Subscriptions()
	if must(t, err); !subscriptions[Subscription{"lake", "shop/pods"}] || !subscriptions[Subscription{"out", "shop/pods"}] {
		t.Errorf("shares %v", subscriptions)
	}
	wantPending(t, s, owe("lake", "pods", change.NewSink), owe("lake", "shop/pods", change.NewSink))
	replayBases, err := s.ReplayBases("lake")
	if must(t, err); replayBases["shop/pods"].ResourceVersion != "4" {
		t.Errorf("bases %v", replayBases)
	}
	missed, err := s.Missed(Subscription{"out", "shop/pods"}, "e")
	if must(t, err); len(missed) != 1 || missed[0].Key.Name != "d" {
		t.Errorf("the absent sink misses %v", missed)
	}
	must(t, s.KeepObjects("shop/pods", []byte("form")))
	if image, found, err := s.Object("shop/pods", change.Key{Namespace: "shop", Name: "a"}); err != nil || !found || image.UID != "uid-a" {
		t.Errorf("kept %+v %v %v", image, found, err)
	}
	inherit(t, s, in("shop"))
	inherit(t, s, in("other"), "pods")
	wantKnown(t, s, "other/pods", "10app=x")
}

// TestI4StreamOfAllTakesEverythingAndComparesIt: it has never read the other namespaces, so it is found in the middle
// of a reconcile, at the oldest position.
func TestI4StreamOfAllTakesEverythingAndComparesIt(t *testing.T) {
	s := open(t, t.TempDir())
	for i, namespace := range []string{"pay", "shop"} {
		stream := in(namespace)
		rec := pod(stream, change.Added, namespace, "a", []string{"10", "9"}[i])
		must(t, s.Commit(Batch{
			Records: []*change.Record{rec}, Taken: []Subscription{{"lake", stream.String()}, {[]string{"one", "two"}[i], stream.String()}},
			PendingSnapshots: []PendingSnapshot{owe("lake", stream.String(), change.Requested)},
		}))
	}
	inherit(t, s, in(""), "pay/pods", "shop/pods")
	wantKnown(t, s, "pods", "9(interrupted) pay/a@10 shop/a@9")
	subscriptions, err := s.Subscriptions()
	if want := map[Subscription]bool{{"lake", "pods"}: true}; err != nil || !reflect.DeepEqual(subscriptions, want) {
		t.Errorf("shares %v, want %v: who lacks a part is new (%v)", subscriptions, want, err)
	}
	wantPending(t, s, owe("lake", "pods", change.Requested))
	streams, err := s.Streams()
	if must(t, err); !slices.Equal(streams, []string{"pods"}) {
		t.Errorf("streams %q", streams)
	}
	inherit(t, s, in(""))
}

// TestI4WhoHadAPartIsAbsentUntilSomebodyDecides: not before that anything is known to be told to the sink, or not. It
// is then a new sink, or misses what goes.
// TestI4ASnapshotOfANamespaceIsOwedThere: the stream of another namespace does not read it, and it is owed still when
// all namespaces are configured again.
func TestI4ASnapshotOfANamespaceIsOwedThere(t *testing.T) {
	s := open(t, t.TempDir())
	fillAll(t, s)
	owed := func(stream string) (namespaces []string) {
		all, err := s.PendingSnapshots()
		must(t, err)
		for _, d := range all {
			if d.Stream == stream && d.Reason == change.Requested {
				namespaces = append(namespaces, d.Limits.Namespace)
			}
		}
		return namespaces
	}
	for _, namespace := range []string{"a", "b"} {
		must(t, s.Commit(Batch{PendingSnapshots: []PendingSnapshot{{
			Stream: "pods", Owed: change.Owed{Sink: "lake", Reason: change.Requested, Limits: change.Limits{Namespace: namespace}},
		}}}))
	}
	inherit(t, s, in("b"), "pods")
	if got := owed("b/pods"); !slices.Equal(got, []string{"b"}) {
		t.Errorf("the stream of b owes snapshots of %q, want of its own namespace alone", got)
	}
	inherit(t, s, in(""), "b/pods")
	if got := owed("pods"); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("the stream of all owes snapshots of %q, want of a and b", got)
	}
}

func TestI4WhoHadAPartIsAbsentUntilSomebodyDecides(t *testing.T) {
	s := open(t, t.TempDir())
	whole, part := in(""), in("shop")
	must(t, s.Commit(Batch{Records: []*change.Record{pod(whole, change.Added, "pay", "a", "5")}, Taken: []Subscription{{"lake", "pods"}}}))
	must(t, s.Commit(Batch{
		Records: []*change.Record{pod(part, change.Added, "shop", "b", "6")},
		Taken:   []Subscription{{"lake", "shop/pods"}, {"one", "shop/pods"}, {"two", "shop/pods"}},
	}))
	inherit(t, s, whole, "shop/pods")
	absences, err := s.Absences()
	if must(t, err); len(absences) != 2 || !absences[0].InPart() || !absences[1].InPart() {
		t.Fatalf("absent are %+v, want the two that had a part", absences)
	}
	one, two := absences[0].Subscription, absences[1].Subscription
	must(t, s.Commit(Batch{Left: []Subscription{one}, Taken: []Subscription{one, two}, Absent: []Absence{{Subscription: two, Since: time.UnixMilli(7)}}}))
	must(t, s.Commit(Batch{Records: []*change.Record{pod(whole, change.Deleted, "shop", "b", "7")}}))
	absences, err = s.Absences()
	if must(t, err); len(absences) != 1 || absences[0].Subscription != two || absences[0].InPart() {
		t.Errorf("absent are %+v, want only the one that does not take the stream", absences)
	}
	missed, err := s.Missed(two, "e")
	if must(t, err); len(missed) != 1 || missed[0].Key.Name != "b" {
		t.Errorf("it misses %v", missed)
	}
	subscriptions, err := s.Subscriptions()
	if must(t, err); !subscriptions[one] || !subscriptions[two] {
		t.Errorf("subscriptions %v", subscriptions)
	}
}

// TestI4AnotherHistoryIsCompared: positions of two histories have no order.
func TestI4AnotherHistoryIsCompared(t *testing.T) {
	s := open(t, t.TempDir())
	must(t, s.SetPosition("pay/pods", change.Position{ResourceVersion: "5", Epoch: "e"}))
	must(t, s.SetPosition("shop/pods", change.Position{ResourceVersion: "6", Epoch: "f"}))
	inherit(t, s, in(""), "pay/pods", "shop/pods")
	if p, _, err := s.Position("pods"); err != nil || p.Epoch != change.Interrupted {
		t.Errorf("position %+v %v", p, err)
	}
}

// TestI4OtherStreamsAreNoHeirs: neither another resource nor another namespace.
func TestI4OtherStreamsAreNoHeirs(t *testing.T) {
	s := open(t, t.TempDir())
	must(t, s.SetPosition("pay/pods", change.Position{ResourceVersion: "5"}))
	must(t, s.SetPosition("pods.metrics.k8s.io", change.Position{ResourceVersion: "5"}))
	must(t, s.SetPosition("secrets", change.Position{ResourceVersion: "5"}))
	inherit(t, s, in("shop"))
	inherit(t, s, in("pay"))
}

// TestI4InheritanceMayEndAnywhere: a crash between any two batches of it loses nothing, whatever is configured next. A
// stream that goes on without a reconcile knows all of its objects.
func TestI4InheritanceMayEndAnywhere(t *testing.T) {
	all, shop, pay := in(""), in("shop"), in("pay")
	plans := map[string][3][]change.Stream{ // what was read, what is to be, and what is instead after a crash
		"narrow": {{all}, {shop, pay}, {all}}, "wide": {{shop, pay}, {all}, {shop, pay}}, "both": {{all, shop}, {shop}, {all}},
	}
	for name, plan := range plans {
		for end := 1; ; end++ {
			if ended := endsAt(t, plan, end); !ended {
				if end < 5 {
					t.Errorf("%s: only %d batches", name, end)
				}
				break
			}
		}
	}
}

// endsAt lets the inheritance fail at its nth batch, then goes on with what is to be, or back. It says whether there
// were so many.
func endsAt(t *testing.T, plan [3][]change.Stream, n int) bool {
	t.Helper()
	ended := false
	for _, next := range plan[1:] {
		left := -1
		s, err := Open(context.Background(), t.TempDir(), Options{Logger: quiet(), piece: 100, usage: func(string) (vfs.DiskUsage, error) {
			if left--; left == 0 {
				return vfs.DiskUsage{AvailBytes: 1, TotalBytes: 1 << 40}, nil
			}
			return vfs.DiskUsage{AvailBytes: 1 << 40, TotalBytes: 1 << 40}, nil
		}})
		must(t, err)
		readBoth(t, s, plan[0])
		left = n
		for _, stream := range plan[1] {
			if _, err := s.Inherit(stream); err != nil {
				ended = true
				break
			}
		}
		left = -1
		for _, stream := range next {
			_, err := s.Inherit(stream)
			must(t, err)
		}
		wantAll(t, s, next, n)
		must(t, s.Close())
	}
	return ended
}

// readBoth makes a state in which the streams were read, at version 100.
func readBoth(t *testing.T, s *Store, streams []change.Stream) {
	t.Helper()
	var batch Batch
	for _, stream := range streams {
		for _, namespace := range []string{"pay", "shop"} {
			for i := range 6 {
				if stream.Namespace == "" || stream.Namespace == namespace {
					batch.Records = append(batch.Records, pod(stream, change.Added, namespace, fmt.Sprint("pod-", i), fmt.Sprint(90+i)))
				}
			}
		}
		end := pod(stream, change.Bookmark, "", "", "100")
		batch.Records = append(batch.Records, end)
	}
	must(t, s.Commit(batch))
	must(t, s.Commit(missed(streams)))
}

// missed makes a sink absent from the streams, which has an object of each namespace that is gone.
func missed(streams []change.Stream) (batch Batch) {
	for _, stream := range streams {
		subscription := Subscription{"lake", stream.String()}
		batch.Absent = append(batch.Absent, Absence{Subscription: subscription, From: change.Position{ResourceVersion: "80"}, Since: time.Unix(1, 0)})
		for _, namespace := range []string{"pay", "shop"} {
			if stream.Namespace == "" || stream.Namespace == namespace {
				key := change.Key{Namespace: namespace, Name: "gone"}
				batch.Held = append(batch.Held, Held{Subscription: subscription, Entry: change.Entry{Key: key, UID: "uid-" + namespace, ResourceVersion: "70"}, Exists: true})
			}
		}
	}
	return batch
}

// wantAll: a stream that goes on knows all of its objects, and all streams together know all objects.
func wantAll(t *testing.T, s *Store, streams []change.Stream, n int) {
	t.Helper()
	objects := map[string]bool{}
	names, err := s.Streams()
	must(t, err)
	for _, name := range names {
		for _, entry := range scan(t, s, name) {
			objects[entry.Key.String()] = true
		}
	}
	if len(objects) != 12 {
		t.Errorf("ended at %d: %d of 12 objects are left: %v", n, len(objects), names)
	}
	for _, stream := range streams {
		position, _, err := s.Position(stream.String())
		must(t, err)
		got, want := len(scan(t, s, stream.String())), 6
		if stream.Namespace == "" {
			want = 12
		}
		gone, err := s.Missed(Subscription{"lake", stream.String()}, "")
		must(t, err)
		if len(gone) != want/6 {
			t.Errorf("ended at %d: sink lake misses %d objects of %s, want %d", n, len(gone), stream, want/6)
		}
		if got != want {
			t.Errorf("ended at %d: %s has %d objects, want %d, at %+v", n, stream, got, want, position)
		}
		if !strings.Contains(position.Selector, "interrupted") && position.ResourceVersion != "100" {
			t.Errorf("ended at %d: %s goes on at %+v", n, stream, position)
		}
	}
}
