package nats

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/format/encode"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/test/sinktest"
)

const bucket = "CLUSTER"

// cluster makes the changes of a cluster, and remembers what it looks like after them.
type cluster struct {
	subject  *encode.Subject
	stream   change.Stream
	version  int
	snapshot change.Snapshot
	state    map[string]string // by key in the bucket
}

func newCluster(resource string) *cluster {
	return &cluster{
		subject: must(encode.NewSubject("$KV."+bucket+".{group}.{resource}.{namespace}.{name}", "test")),
		stream:  change.Stream{Resource: change.Resource{Version: "v1", Name: resource, Kind: "Odd"}},
		state:   map[string]string{},
	}
}

// message is of one object, or of the stream if the name is empty.
func (c *cluster) message(op change.Op, namespace, name string) sink.Message {
	c.version++
	rec := change.Record{
		Stream: &c.stream, Op: op, Key: change.Key{Namespace: namespace, Name: name}, UID: "u", ResourceVersion: strconv.Itoa(c.version),
	}
	m := sink.Message{Op: op.String(), ResourceVersion: rec.ResourceVersion, Destination: string(c.subject.Append(nil, &rec)), Value: []byte("value " + rec.ResourceVersion)}
	if !op.OfObject() {
		rec.Snapshot, m.Reason, m.Limited = &c.snapshot, string(c.snapshot.Reason), c.snapshot.Limits != change.Limits{}
	}
	m.ID = rec.ID("0a1b2c3d").String()
	c.note(&m)
	return m
}

func (c *cluster) note(m *sink.Message) {
	key := m.Destination[len("$KV."+bucket+"."):]
	if m.Op == change.Deleted.String() {
		delete(c.state, key)
		return
	}
	c.state[key] = string(m.Value)
}

// change is a random one of an object whose name has any byte that a name can have in a path of the API.
func (c *cluster) change() sink.Message {
	op := change.Added + change.Op(rand.IntN(3)) // added, updated, deleted
	b := byte(1 + rand.IntN(255))
	if b == '/' {
		b = '-'
	}
	return c.message(op, []string{"", "shop", "kube-system"}[rand.IntN(3)], []string{"", "a"}[rand.IntN(2)]+string([]byte{b}))
}

func bucketOptions(url string) Options { return Options{URL: url, KV: bucket} }

// wantBucket compares what a client of the bucket sees with the state.
func wantBucket(t *testing.T, s *testServer, want map[string]string) {
	t.Helper()
	js, ctx := s.admin()
	watcher, err := must(js.KeyValue(ctx, bucket)).WatchAll(ctx, jetstream.IgnoreDeletes())
	noError(t, err)
	defer func() { _ = watcher.Stop() }()
	got := map[string]string{}
	for entry := range watcher.Updates() {
		if entry == nil {
			break // that was all
		}
		got[entry.Key()] = string(entry.Value())
	}
	if maps.Equal(got, want) {
		return
	}
	for key, value := range want {
		if got[key] != value {
			t.Errorf("key %s has %q, want %q", key, got[key], value)
		}
	}
	for key := range got {
		if _, found := want[key]; !found {
			t.Errorf("key %s is of no object", key)
		}
	}
	t.FailNow()
}

// TestI3BucketMirrorsTheCluster through cut connections and killed exporters. What a crash left unsaved is written
// again, but for what the bucket proves: a newer version of the object. A cut makes nothing come twice, though the
// reader of the tail finds gaps.
func TestI3BucketMirrorsTheCluster(t *testing.T) {
	s := startServer(t)
	network := startProxy(t, s.Addr().String())
	options := bucketOptions(network.url())
	publisher := openSink(t, options)
	c := newCluster("odds")
	saved := write(t, publisher, nil)
	var unsaved []sink.Message
	written := 0
	done := network.cutOften(20)
	for round, running := 0, true; running; round++ {
		select {
		case <-done:
			running = false
		default:
		}
		var batch []sink.Message
		for range 200 {
			batch = append(batch, c.change())
		}
		mark := write(t, publisher, batch)
		written += len(batch)
		unsaved = append(unsaved, batch...)
		if round%3 == 0 {
			saved, unsaved = mark, nil
		}
		if round%5 == 4 {
			publisher = openSink(t, options) // the old one is as good as killed
			left := replay(t, publisher, saved, unsaved)
			write(t, publisher, left)
			written += len(left)
		}
	}
	wantBucket(t, s, c.state)
	if seq := publisher.stream.place.Seq; seq != uint64(written) {
		t.Errorf("%d messages took %d sequences", written, seq)
	}
}

// replay is what of the messages the bucket does not prove to be delivered.
func replay(t *testing.T, s *Sink, saved sink.Mark, messages []sink.Message) []sink.Message {
	t.Helper()
	ids := openAt(t, s, saved)
	newest := map[change.Key]string{}
	for _, text := range ids {
		id := must(change.ParseID(text))
		if change.CompareVersions(id.ResourceVersion, newest[id.Key]) > 0 {
			newest[id.Key] = id.ResourceVersion
		}
	}
	var left []sink.Message
	for _, m := range messages {
		id := must(change.ParseID(m.ID))
		if change.CompareVersions(id.ResourceVersion, newest[id.Key]) > 0 {
			left = append(left, m)
		}
	}
	return left
}

// TestBucketIsOneThatClientsKnow: its configuration, a delete marker, history, and the key that tells of the stream.
func TestBucketIsOneThatClientsKnow(t *testing.T) {
	s := startServer(t)
	options := bucketOptions(s.URL())
	options.History, options.MaxBytes = 3, 1<<20
	publisher := openSink(t, options)
	c := newCluster("pods")
	write(t, publisher, []sink.Message{
		c.message(change.SnapshotBegin, "", ""), c.message(change.Replaced, "shop", "web.1"), c.message(change.SnapshotEnd, "", ""),
		c.message(change.Updated, "shop", "web.1"), c.message(change.Deleted, "shop", "web.1"),
	})
	wantBucket(t, s, map[string]string{"core.pods.-.-": "value 3"})
	js, ctx := s.admin()
	kv := must(js.KeyValue(ctx, bucket))
	history := must(kv.History(ctx, "core.pods.shop.web_1"))
	if len(history) != 3 || history[2].Operation() != jetstream.KeyValueDelete || len(history[2].Value()) != 0 {
		t.Fatalf("got %v", history)
	}
	if status := must(kv.Status(ctx)); status.History() != 3 || status.Config().MaxBytes != 1<<20 {
		t.Fatalf("got %+v", status.Config())
	}
}

// TestI4SweepTakesOutWhatNobodyRemembers: keys of an earlier life, at the end of the first full snapshot of their
// stream, and nothing else.
func TestI4SweepTakesOutWhatNobodyRemembers(t *testing.T) {
	for _, history := range []int{1, 5} {
		t.Run(fmt.Sprint("history=", history), func(t *testing.T) {
			s := startServer(t)
			options := bucketOptions(s.URL())
			options.History = history
			pods, nodes := newCluster("pods"), newCluster("nodes")
			former := openSink(t, options)
			for i := range 700 {
				write(t, former, []sink.Message{pods.message(change.Added, "shop", fmt.Sprint("old-", i))})
			}
			write(t, former, []sink.Message{
				pods.message(change.Added, "shop", "web"), pods.message(change.Updated, "shop", "web"), pods.message(change.Added, "shop", "kept"),
				pods.message(change.Deleted, "shop", "old-0"), nodes.message(change.Added, "", "n1"),
			})
			s.publish("$KV."+bucket+".core.pods.shop.by_hand", "")

			publisher := openSink(t, options)
			pods.state, pods.snapshot.Reason = map[string]string{}, change.Initial
			mark := write(t, publisher, []sink.Message{
				pods.message(change.SnapshotBegin, "", ""), pods.message(change.Replaced, "shop", "web"), pods.message(change.Replaced, "shop", "new"),
			})
			openAt(t, publisher, mark) // the floor is in the mark
			pods.snapshot.Reason = change.Gone
			write(t, publisher, []sink.Message{pods.message(change.SnapshotEnd, "", "")})
			if must(must(s.keys()).Get(t.Context(), "core.pods.shop.old-1")).Operation() != jetstream.KeyValuePut {
				t.Fatal("a snapshot that is not full took a key out")
			}
			pods.snapshot.Reason, pods.snapshot.Limits = change.Requested, change.Limits{Name: "web"}
			write(t, publisher, []sink.Message{pods.message(change.SnapshotEnd, "", "")})
			if must(must(s.keys()).Get(t.Context(), "core.pods.shop.old-1")).Operation() != jetstream.KeyValuePut {
				t.Fatal("a snapshot of a part took a key of another part out")
			}
			pods.snapshot.Limits = change.Limits{}
			pods.snapshot.Reason = change.Initial
			before := publisher.stream.place
			mark = write(t, publisher, []sink.Message{
				pods.message(change.Replaced, "shop", "kept"), pods.message(change.SnapshotEnd, "", ""), pods.message(change.Updated, "shop", "web"),
			})
			want := maps.Clone(pods.state)
			maps.Copy(want, nodes.state)
			wantBucket(t, s, want)

			ids, err := sinktest.Open(within(t), newSink(t, options), before.text())
			if err != nil || len(ids) != 3+700 { // 699 old ones and one by hand
				t.Fatalf("got %d ids, %v", len(ids), err)
			}
			pods.snapshot.Reason = change.Lost
			write(t, publisher, []sink.Message{pods.message(change.SnapshotEnd, "", "")})
			if at := must(parseMark(mark)); publisher.stream.place.Seq != at.Seq+1 {
				t.Fatalf("a second sweep wrote %d messages", publisher.stream.place.Seq-at.Seq-1)
			}
		})
	}
}

func (s *testServer) keys() (jetstream.KeyValue, error) {
	js, ctx := s.admin()
	return js.KeyValue(ctx, bucket)
}

// TestI4RejectionAfterASweep names the message by its place in the whole batch.
func TestI4RejectionAfterASweep(t *testing.T) {
	s := startServer(t)
	options := bucketOptions(s.URL())
	c := newCluster("pods")
	write(t, openSink(t, options), []sink.Message{c.message(change.Added, "", "old")})
	publisher := openSink(t, options)
	s.change(publisher, func(c *jetstream.StreamConfig) { c.MaxMsgSize = 5000 })
	c.snapshot.Reason = change.Initial
	batch := []sink.Message{c.message(change.SnapshotBegin, "", ""), c.message(change.SnapshotEnd, "", ""), c.message(change.Added, "", "a"), c.message(change.Added, "", "b")}
	batch[3].Value = make([]byte, 6000)
	_, err := publisher.Write(within(t), batch)
	wantRejected(t, err, 3, "too_large")
}

func TestI4KeysThatClientsRefuseAreRejected(t *testing.T) {
	s := startServer(t)
	publisher := openSink(t, bucketOptions(s.URL()))
	_, err := publisher.Write(within(t), []sink.Message{{ID: "c/pods/a/x/u/1/added", Destination: "$KV." + bucket + ".a:b"}})
	wantError(t, wantRejected(t, err, 0, "invalid"), `publish to subject "$KV.CLUSTER.a:b": it is not a key of the bucket: a key has letters, digits, and -/_=. as in a path`)
}
