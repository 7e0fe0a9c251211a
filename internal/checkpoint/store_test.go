package checkpoint

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

func TestI5StateSurvivesReopening(t *testing.T) {
	dir := t.TempDir() + "/a/b"
	s := open(t, dir)
	cluster := Cluster{Name: "prod\x00eu", UID: "8f2c"}
	must(t, s.SetCluster(cluster))
	pod := object(change.Added, "web", "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "41")
	pod.Position.Selector = "app=x"
	must(t, s.Commit(Batch{Records: []*change.Record{pod}, Marks: map[string]sink.Mark{"out": "12", "lake": "{\"0\":7}"}}))
	must(t, s.SetPosition("shop/secrets", change.Position{ResourceVersion: "9"}))
	must(t, s.Close())

	s = open(t, dir)
	if got, found, err := s.Cluster(); err != nil || !found || got != cluster {
		t.Errorf("cluster %+v %v %v", got, found, err)
	}
	if got, found, err := s.Position("pods"); err != nil || !found || got != pod.Position {
		t.Errorf("position %+v %v %v", got, found, err)
	}
	positions, err := s.Positions()
	if want := map[string]change.Position{"pods": pod.Position, "shop/secrets": {ResourceVersion: "9"}}; err != nil || !reflect.DeepEqual(positions, want) {
		t.Errorf("positions %+v, want %+v (%v)", positions, want, err)
	}
	marks, err := s.Marks()
	if want := map[string]sink.Mark{"out": "12", "lake": "{\"0\":7}"}; err != nil || !reflect.DeepEqual(marks, want) {
		t.Errorf("marks %+v, want %+v (%v)", marks, want, err)
	}
	want := change.Entry{Key: pod.Key, UID: pod.UID, ResourceVersion: "41"}
	if got, found, err := s.Lookup("pods", pod.Key); err != nil || !found || got != want {
		t.Errorf("entry %+v %v %v", got, found, err)
	}
}

func TestI5NewStateKnowsNothing(t *testing.T) {
	s := open(t, t.TempDir())
	_, cluster, err1 := s.Cluster()
	_, position, err2 := s.Position("pods")
	_, mark, err3 := s.Mark("out")
	_, entry, err4 := s.Lookup("pods", change.Key{Name: "x"})
	streams, err5 := s.Streams()
	for _, err := range []error{err1, err2, err3, err4, err5} {
		must(t, err)
	}
	if cluster || position || mark || entry || len(streams) > 0 {
		t.Error("a new state knows something")
	}
	must(t, s.Commit(Batch{}))
}

// TestI5CommitFollowsTheRecords: the inventory is what the sinks have after each kind of record.
func TestI5CommitFollowsTheRecords(t *testing.T) {
	s := open(t, t.TempDir())
	oneSink, all := object(change.Sync, "one", "u", "9"), object(change.Sync, "all", "u", "9")
	oneSink.Sink, oneSink.Position, all.Position = "late", change.Position{}, change.Position{}
	frame := &change.Record{Stream: pods, Op: change.SnapshotEnd, ResourceVersion: "14", Position: change.Position{ResourceVersion: "14", Complete: true, Selector: "s"}}
	must(t, s.Commit(Batch{Records: []*change.Record{
		object(change.Added, "kept", "u", "5"), object(change.Added, "gone", "u", "6"),
		object(change.Updated, "kept", "u", "7"), object(change.Deleted, "gone", "u", "8"),
		object(change.Deleted, "made again", "u1", "10"), object(change.Replaced, "made again", "u2", "11"),
		oneSink, all,
		{Stream: pods, Op: change.SnapshotBegin, ResourceVersion: "14"}, frame,
		{Stream: pods, Op: change.Gap, ResourceVersion: "14"},
		{Stream: pods, Op: change.Bookmark, ResourceVersion: "14"},
	}}))
	want := []string{"shop/all u 9", "shop/kept u 7", "shop/made again u2 11"}
	var got []string
	for _, entry := range scan(t, s, "pods") {
		got = append(got, fmt.Sprint(entry.Key, " ", entry.UID, " ", entry.ResourceVersion))
	}
	if !slices.Equal(got, want) {
		t.Errorf("inventory %q, want %q", got, want)
	}
	if position, _, err := s.Position("pods"); err != nil || position != frame.Position {
		t.Errorf("position %+v, want %+v: the last record that has one (%v)", position, frame.Position, err)
	}
}

// TestI5StreamsByNameNotByPointer: a stream that was resolved twice is one stream, and the later position wins.
func TestI5StreamsByNameNotByPointer(t *testing.T) {
	s, again := open(t, t.TempDir()), *pods
	again.Resource.Version = "v2"
	first, second, third := object(change.Added, "a", "u", "1"), object(change.Added, "b", "u", "2"), object(change.Added, "c", "u", "3")
	second.Stream = &again
	must(t, s.Commit(Batch{Records: []*change.Record{first, second, third}}))
	if position, _, err := s.Position("pods"); err != nil || position.ResourceVersion != "3" {
		t.Errorf("position %+v, want 3 (%v)", position, err)
	}
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

// TestI3ScanHasTheServersOrder: a reconcile merges the scan with a list sorted bytewise by the joined keys.
func TestI3ScanHasTheServersOrder(t *testing.T) {
	s := open(t, t.TempDir())
	joined := map[string]bool{}
	var batch Batch
	for i, key := range oddKeys() {
		rec := object(change.Added, "", strconv.Itoa(i), strconv.Itoa(i))
		rec.Key = key
		batch.Records = append(batch.Records, rec)
		joined[key.String()] = true
	}
	rand.Shuffle(len(batch.Records), func(i, j int) {
		batch.Records[i], batch.Records[j] = batch.Records[j], batch.Records[i]
	})
	must(t, s.Commit(batch))
	var want, got []string
	for key := range joined {
		want = append(want, key)
	}
	sort.Strings(want)
	for _, entry := range scan(t, s, "pods") {
		got = append(got, entry.Key.String())
		if found, ok, err := s.Lookup("pods", entry.Key); err != nil || !ok || found != entry {
			t.Fatalf("Lookup of %q gives %+v %v %v, the scan %+v", entry.Key, found, ok, err, entry)
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("the scan gives %d keys in another order than the %d sorted ones", len(got), len(want))
	}
	if n, err := s.Count("pods"); err != nil || n != len(want) {
		t.Errorf("Count is %d, %v, want %d", n, err, len(want))
	}
}

// TestI5ScanIsOfOneMoment: what is committed during a scan is not in it, and a scan that is broken off holds nothing.
func TestI5ScanIsOfOneMoment(t *testing.T) {
	s := open(t, t.TempDir())
	var batch Batch
	for i := range 3 * scanChunk {
		batch.Records = append(batch.Records, object(change.Added, fmt.Sprintf("%06d", i), "u", "1"))
	}
	must(t, s.Commit(batch))
	seen := 0
	for entry, err := range s.Scan("pods", "") {
		must(t, err)
		if entry.ResourceVersion != "1" {
			t.Fatalf("the scan sees a later commit: %+v", entry)
		}
		if seen++; seen == 1 {
			for i := range batch.Records {
				batch.Records[i] = object(change.Updated, fmt.Sprintf("%06d", i), "u", "2")
			}
			must(t, s.Commit(batch))
			must(t, s.Commit(Batch{Over: []string{"pods"}}))
		}
	}
	if seen != 3*scanChunk {
		t.Errorf("the scan gives %d objects, want %d", seen, 3*scanChunk)
	}
	for range s.Scan("pods", "") {
		t.Error("the dropped stream has objects")
	}
	must(t, s.Commit(batch))
	for range s.Scan("pods", "") {
		break
	}
}

// TestI10StreamsAreKeptApart: no stream is another's prefix, whatever its name.
func TestI10StreamsAreKeptApart(t *testing.T) {
	s := open(t, t.TempDir())
	names := []string{"a", "a\x00", "a\x00b", "a\x01", "a/b", "events", "events.events.k8s.io", "pods", "pods.metrics.k8s.io"}
	put := func() {
		for _, name := range names {
			must(t, s.SetPosition(name, change.Position{ResourceVersion: name}))
			stream := &change.Stream{Resource: change.Resource{Name: name}}
			must(t, s.Commit(Batch{Records: []*change.Record{
				{Stream: stream, Op: change.Added, Key: change.Key{Namespace: "b", Name: "x"}, UID: name},
			}}))
		}
	}
	put()
	if got, err := s.Streams(); err != nil || !slices.Equal(got, names) {
		t.Fatalf("streams %q, want %q (%v)", got, names, err)
	}
	for _, dropped := range names {
		put()
		must(t, s.Commit(Batch{Over: []string{dropped}}))
		for _, name := range names {
			entries := scan(t, s, name)
			position, found, err := s.Position(name)
			must(t, err)
			if name == dropped {
				if len(entries) > 0 || found {
					t.Errorf("dropped %q still has %+v %+v", name, entries, position)
				}
			} else if len(entries) != 1 || entries[0].UID != name || position.ResourceVersion != name {
				t.Errorf("dropping %q left %q with %+v %+v", dropped, name, entries, position)
			}
		}
	}
}

// paid is the end of a snapshot that the sink was owed.
func paid(sinkName string, reason change.Reason) *change.Record {
	rec := object(change.SnapshotEnd, "", "", "9")
	rec.Sink, rec.Snapshot = sinkName, &change.Snapshot{Reason: reason}
	return rec
}

func TestI4SnapshotIsPendingUntilItIsComplete(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	lake, bus := owe("lake", "pods", change.NewSink), owe("bus", "pods", change.Lost)
	must(t, s.Commit(Batch{PendingSnapshots: []PendingSnapshot{lake, bus}}))
	must(t, s.Commit(Batch{Records: []*change.Record{paid("lake", change.Lost), paid("other", change.NewSink)}}))
	must(t, s.Close())
	s = open(t, dir)
	if got, err := s.PendingSnapshots(); err != nil || !slices.Equal(got, []PendingSnapshot{bus, lake}) {
		t.Fatalf("pending snapshots are %+v, %v; want both", got, err)
	}
	must(t, s.Commit(Batch{Records: []*change.Record{paid("lake", change.NewSink)}}))
	if got, err := s.PendingSnapshots(); err != nil || !slices.Equal(got, []PendingSnapshot{bus}) {
		t.Errorf("pending snapshots are %+v, %v; want that of bus", got, err)
	}
}

func TestI4SubscriptionThatIsLeftTakesItsPendingSnapshotsAlong(t *testing.T) {
	s := open(t, t.TempDir())
	pods, podsToo, nodes := Subscription{"lake", "pods"}, Subscription{"lakes", "pods"}, Subscription{"lake", "nodes"}
	must(t, s.Commit(Batch{
		Taken:            []Subscription{pods, podsToo, nodes},
		PendingSnapshots: []PendingSnapshot{owe("lake", "pods", change.NewSink), owe("lakes", "pods", change.NewSink), owe("lake", "nodes", change.Lost)},
	}))
	must(t, s.Commit(Batch{Left: []Subscription{pods}}))
	subscriptions, err := s.Subscriptions()
	must(t, err)
	pendingSnapshots, err := s.PendingSnapshots()
	must(t, err)
	if want := (map[Subscription]bool{podsToo: true, nodes: true}); !maps.Equal(subscriptions, want) {
		t.Errorf("shares are %v, want %v", subscriptions, want)
	}
	if want := []PendingSnapshot{owe("lake", "nodes", change.Lost), owe("lakes", "pods", change.NewSink)}; !slices.Equal(pendingSnapshots, want) {
		t.Errorf("pending snapshots are %v, want %v", pendingSnapshots, want)
	}
	must(t, s.Retain([]string{"lakes"}))
	if subscriptions, err = s.Subscriptions(); err != nil || !maps.Equal(subscriptions, map[Subscription]bool{podsToo: true}) {
		t.Errorf("a sink that left before it had a mark was kept: %v, %v", subscriptions, err)
	}
}

func TestI4SinkThatLeftIsForgotten(t *testing.T) {
	s := open(t, t.TempDir())
	must(t, s.Commit(Batch{
		Taken:            []Subscription{{"lake", "pods"}, {"bus", "pods"}},
		Marks:            map[string]sink.Mark{"lake": "1", "bus": "2"},
		PendingSnapshots: []PendingSnapshot{owe("lake", "pods", change.NewSink), owe("bus", "pods", change.Lost)},
	}))
	must(t, s.Retain([]string{"bus"}))
	marks, err := s.Marks()
	must(t, err)
	pendingSnapshots, err := s.PendingSnapshots()
	must(t, err)
	subscriptions, err := s.Subscriptions()
	must(t, err)
	if len(subscriptions) != 1 || !subscriptions[Subscription{"bus", "pods"}] {
		t.Errorf("the state still has %v", subscriptions)
	}
	if len(marks) != 1 || marks["bus"] != "2" || !slices.Equal(pendingSnapshots, []PendingSnapshot{owe("bus", "pods", change.Lost)}) {
		t.Errorf("the state still has %v and %+v", marks, pendingSnapshots)
	}
}

func TestI5RecordForOneSinkLeavesTheInventory(t *testing.T) {
	s := open(t, t.TempDir())
	must(t, s.Commit(Batch{Records: []*change.Record{object(change.Added, "a", "u", "5")}}))
	gone, sent := object(change.Deleted, "a", "ghost", "6"), object(change.Sync, "b", "v", "7")
	gone.Sink, sent.Sink = "lake", "lake"
	must(t, s.Commit(Batch{Records: []*change.Record{gone, sent}}))
	if got := scan(t, s, "pods"); len(got) != 1 || got[0].UID != "u" {
		t.Errorf("inventory is %+v, want a alone", got)
	}
}

// TestI5ReadersSeeWholeBatches: several goroutines read while one commits, and none sees half a batch.
func TestI5ReadersSeeWholeBatches(t *testing.T) {
	s := open(t, t.TempDir())
	must(t, s.Commit(numbered(1)))
	var readers sync.WaitGroup
	done := make(chan struct{})
	for range 3 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				versions := map[string]bool{}
				for entry, err := range s.Scan("pods", "") {
					if err != nil {
						t.Error(err)
					}
					versions[entry.ResourceVersion] = true
				}
				if len(versions) != 1 {
					t.Errorf("one scan sees the batches %v", versions)
				}
			}
		})
	}
	for n := 2; n < 60; n++ {
		must(t, s.Commit(numbered(n)))
	}
	close(done)
	readers.Wait()
}

func TestCompareCluster(t *testing.T) {
	saved := Cluster{Name: "a", UID: "1"}
	for now, want := range map[Cluster]Match{saved: SameCluster, {Name: "a", UID: "2"}: NewEpoch} {
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
