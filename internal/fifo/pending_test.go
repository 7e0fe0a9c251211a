package fifo

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// consumer is the slow oracle: it folds records into what exists, by key and by uid, and at the end of a snapshot it
// forgets what the snapshot did not tell of.
type consumer struct {
	objects  map[string]string // by stream and key: uid, version, object
	uids     map[string]bool
	versions map[string]uint64          // of all that it was told of a key
	told     map[string]map[string]bool // by stream, within a snapshot
	err      error
}

func newConsumer() *consumer {
	return &consumer{map[string]string{}, map[string]bool{}, map[string]uint64{}, map[string]map[string]bool{}, nil}
}

func (c *consumer) fold(rec *change.Record) {
	stream := rec.Stream.String()
	name := stream + " " + rec.Key.String()
	switch {
	case rec.Op == change.SnapshotBegin:
		c.told[stream] = map[string]bool{}
	case rec.Op == change.SnapshotEnd:
		c.sweep(stream)
	case rec.Op == change.Gap:
	case rec.Op == change.Deleted:
		delete(c.objects, name)
		delete(c.uids, rec.UID)
	default:
		c.objects[name] = rec.UID + " " + rec.ResourceVersion + " " + string(rec.Object)
		c.uids[rec.UID] = true
		if told := c.told[stream]; told != nil {
			told[name] = true
		}
	}
	if rec.Op.OfObject() {
		if rec.Seq < c.versions[name] {
			c.err = fmt.Errorf("record %d of %s came after record %d (I3)", rec.Seq, name, c.versions[name])
		}
		c.versions[name] = rec.Seq
	}
}

func (c *consumer) sweep(stream string) {
	for name, object := range c.objects {
		if strings.HasPrefix(name, stream+" ") && !c.told[stream][name] {
			delete(c.objects, name)
			delete(c.uids, strings.Fields(object)[0])
		}
	}
	delete(c.told, stream)
}

func (c *consumer) same(other *consumer) bool {
	return maps.Equal(c.objects, other.objects) && maps.Equal(c.uids, other.uids)
}

// course pushes a well-formed sequence of records, which its bytes choose, into a coalescing queue and pops from it.
type course struct {
	t       *testing.T
	queue   *Queue
	full    *consumer // is given everything
	merging *consumer // is given what is popped
	live    map[object]string
	last    map[object]string // uids
	state   map[uint64]string // of each Seq: queued, spilled, popped, merged
	disk    []*change.Record  // comes before what is queued
	spilled int
	uid     int
	limit   Limit
}

func newCourse(t *testing.T, limit Limit) *course {
	return &course{
		t: t, queue: newCoalescing(limit), full: newConsumer(), merging: newConsumer(),
		live: map[object]string{}, last: map[object]string{}, state: map[uint64]string{}, limit: limit,
	}
}

var streams = []change.Stream{
	{Resource: change.Resource{Version: "v1", Name: "pods"}}, {Resource: change.Resource{Version: "v1", Name: "services"}},
}

func (c *course) step(b, arg byte) {
	stream := streams[arg&1]
	id := object{stream, change.Key{Name: string('a' + rune(arg>>1&3))}}
	switch b % 8 {
	case 0, 1, 2:
		c.write(id, arg&8 != 0)
	case 3, 4:
		c.delete(id, arg&16 != 0)
	case 5:
		if b&8 != 0 {
			c.snapshot(stream, arg)
		} else {
			c.pop(int(arg))
		}
	case 6:
		if b&16 != 0 {
			c.spill(int(arg))
		} else {
			c.pop(1 + int(arg&7))
		}
	default:
		c.pop(1 + int(arg&7))
	}
}

// spill takes the oldest records to disk: those that were pushed first, in the order of the queue.
func (c *course) spill(n int) {
	var chunk []*change.Record
	order := map[*change.Record]uint64{}
	for seq := uint64(1); seq <= c.queue.newest && n > 0; seq++ {
		if c.state[seq] != "queued" {
			continue
		}
		rec := c.queue.Oldest()
		if n--; rec.Seq != seq {
			c.t.Fatalf("the oldest record is %d, want %d", rec.Seq, seq)
		}
		at, found := c.queue.Remove(rec)
		if _, again := c.queue.Remove(rec); !found || again {
			c.t.Fatalf("record %d is queued and was taken out %t, and once more %t", seq, found, again)
		}
		c.queue.Cancel(rec.Size())
		c.settle(rec, "spilled")
		chunk, order[rec] = append(chunk, rec), at
	}
	slices.SortFunc(chunk, func(a, b *change.Record) int { return cmp.Compare(order[a], order[b]) })
	c.disk = append(c.disk, chunk...)
	c.spilled += len(chunk)
}

// write creates the object or changes it. One that was deleted may come back as it was: a selection does that.
func (c *course) write(id object, back bool) {
	op, uid := change.Updated, c.live[id]
	if uid == "" {
		op, uid = change.Added, c.last[id]
		if uid == "" || !back {
			c.uid++
			uid = fmt.Sprintf("uid-%d", c.uid)
		}
	}
	c.live[id], c.last[id] = uid, uid
	c.push(&change.Record{Op: op, UID: uid, Object: []byte(strconv.Itoa(int(c.queue.newest)))}, id)
}

func (c *course) delete(id object, seen bool) {
	uid := c.live[id]
	if uid == "" {
		if uid = c.last[id]; uid == "" {
			return // a delete that is told twice is possible, one of nothing is not
		}
	}
	delete(c.live, id)
	rec := &change.Record{Op: change.Deleted, UID: uid, FinalStateUnknown: !seen}
	if seen {
		rec.Object = []byte("final")
	}
	c.push(rec, id)
}

func (c *course) snapshot(stream change.Stream, arg byte) {
	frame := object{stream: stream}
	if arg&32 != 0 {
		c.push(&change.Record{Op: change.Gap}, frame)
	}
	c.push(&change.Record{Op: change.SnapshotBegin}, frame)
	for _, name := range []string{"a", "b", "c", "d"} {
		if id := (object{stream, change.Key{Name: name}}); c.live[id] != "" {
			c.push(&change.Record{Op: change.Sync, UID: c.live[id], Object: []byte("synced")}, id)
		}
	}
	c.push(&change.Record{Op: change.SnapshotEnd}, frame)
}

func (c *course) push(rec *change.Record, id object) {
	rec.Stream, rec.Key = &id.stream, id.key
	for !c.queue.ReserveFor(rec) {
		if c.queue.Len() == 0 {
			c.t.Fatal("an empty queue has no room")
		}
		c.pop(1)
	}
	rec.ResourceVersion = strconv.FormatUint(c.queue.newest+1, 10)
	merged := c.queue.Push(rec)
	c.full.fold(rec)
	c.state[rec.Seq] = "queued"
	for _, old := range merged {
		c.settle(old, "merged")
	}
	if used := c.queue.Used(); used.Records != c.queue.Len() || used.Records > c.limit.Records || used.Bytes > c.limit.Bytes {
		c.t.Fatalf("%d records are queued in %+v, the limit is %+v (I6)", c.queue.Len(), used, c.limit)
	}
}

func (c *course) pop(n int) {
	if len(c.disk) > 0 {
		n = min(max(1, n), len(c.disk))
		for _, rec := range c.disk[:n] {
			c.state[rec.Seq] = "queued"
			c.settle(rec, "popped")
			c.merging.fold(rec)
		}
		c.disk = c.disk[n:]
		c.judge()
		return
	}
	for _, rec := range c.queue.Pop(nil, Limit{Bytes: 1 << 20, Records: max(1, n)}) {
		c.settle(rec, "popped")
		c.merging.fold(rec)
	}
	c.judge()
}

func (c *course) judge() {
	if c.merging.err != nil {
		c.t.Fatal(c.merging.err)
	}
	if c.queue.Len() == 0 && len(c.disk) == 0 && !c.full.same(c.merging) {
		c.t.Fatalf("the queue is empty, and the consumer has\n%v\n%v, of all records it would have\n%v\n%v",
			c.merging.objects, c.merging.uids, c.full.objects, c.full.uids)
	}
}

func (c *course) settle(rec *change.Record, as string) {
	if c.state[rec.Seq] != "queued" {
		c.t.Fatalf("record %d is %s, and was %q before", rec.Seq, as, c.state[rec.Seq])
	}
	c.state[rec.Seq] = as
}

func (c *course) run(script []byte) {
	for i := 0; i+1 < len(script); i += 2 {
		c.step(script[i], script[i+1])
	}
	c.pop(1 << 20)
	c.pop(1 << 20) // after what was on disk
	for seq, state := range c.state {
		if state == "queued" || state == "spilled" {
			c.t.Fatalf("record %d is neither popped nor merged", seq)
		}
	}
	if len(c.queue.objects) != 0 || len(c.queue.moved) != 0 || c.queue.Oldest() != nil || c.queue.Used() != (Limit{}) {
		c.t.Fatalf("an empty queue remembers %d objects and uses %+v", len(c.queue.objects), c.queue.Used())
	}
}

func FuzzI3CoalescedRecordsFoldToTheSameState(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 3, 0, 0, 0, 3, 16, 13, 0, 0, 0, 6, 1})
	f.Fuzz(func(t *testing.T, script []byte) {
		newCourse(t, Limit{Bytes: 1 << 20, Records: 12}).run(script)
	})
}

func TestI3CoalescedRecordsFoldToTheSameState(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	merged, spilled := 0, 0
	for range 3000 {
		script := make([]byte, 2*(1+rng.IntN(120)))
		for i := range script {
			script[i] = byte(rng.Uint32())
		}
		c := newCourse(t, Limit{Bytes: 3000 + rng.IntN(20_000), Records: 2 + rng.IntN(30)})
		c.run(script)
		spilled += c.spilled
		for _, state := range c.state {
			if state == "merged" {
				merged++
			}
		}
	}
	if merged < 1000 || spilled < 1000 {
		t.Fatalf("only %d records were merged, and %d spilled: the test shows nothing", merged, spilled)
	}
}

// pushed pushes records of the ops into a coalescing queue, each with the name and the uid of its object, and returns
// what the queue holds.
func pushed(t *testing.T, ops ...string) string {
	t.Helper()
	c := newCourse(t, Limit{Bytes: 1 << 20, Records: 100})
	for _, text := range ops {
		op, rest, _ := strings.Cut(text, " ")
		name, uid, _ := strings.Cut(rest, "/")
		rec := &change.Record{Op: change.ParseOp(op), UID: uid, Stream: &streams[0], Key: change.Key{Name: name}}
		if !c.queue.ReserveFor(rec) {
			t.Fatal("no room")
		}
		c.queue.Push(rec)
	}
	var held []string
	for _, rec := range c.queue.Pop(nil, Limit{Bytes: 1 << 20, Records: 100}) {
		held = append(held, fmt.Sprintf("%d:%s", rec.Seq, rec.Op))
	}
	return strings.Join(held, " ")
}

func TestRulesOfCoalescing(t *testing.T) {
	for name, c := range map[string]struct {
		ops  []string
		want string
	}{
		"an update supersedes, in its place":          {[]string{"added a/1", "added b/2", "updated a/1"}, "3:updated 2:added"},
		"a delete is kept":                            {[]string{"added a/1", "deleted a/1"}, "2:deleted"},
		"a delete stays before another uid":           {[]string{"updated a/1", "deleted a/1", "added a/2", "updated a/2"}, "2:deleted 4:updated"},
		"an object that is back was never away":       {[]string{"deleted a/1", "added a/1"}, "2:added"},
		"two deletes of an object are one":            {[]string{"deleted a/1", "added a/1", "deleted a/1"}, "3:deleted"},
		"each object's delete is kept":                {[]string{"deleted a/1", "added a/2", "deleted a/2"}, "1:deleted 3:deleted"},
		"nothing moves before a snapshot":             {[]string{"added a/1", "snapshot.begin /", "sync b/2", "sync a/1", "snapshot.end /"}, "2:snapshot.begin 3:sync 4:sync 5:snapshot.end"},
		"nothing moves before a gap":                  {[]string{"added a/1", "gap /", "updated a/1"}, "2:gap 3:updated"},
		"what a snapshot told of stays in its frames": {[]string{"snapshot.begin /", "sync a/1", "snapshot.end /", "updated a/1"}, "1:snapshot.begin 4:updated 3:snapshot.end"},
	} {
		if got := pushed(t, c.ops...); got != c.want {
			t.Errorf("%s: the queue holds %s, want %s", name, got, c.want)
		}
	}
}

// A queue that is full of other objects blocks; one that holds the object takes its next version.
func TestI6CoalescingQueueIsBoundedByDistinctObjects(t *testing.T) {
	q := newCoalescing(Limit{Bytes: 1 << 20, Records: 2})
	of := func(name string) *change.Record {
		return &change.Record{Op: change.Updated, Stream: &streams[0], Key: change.Key{Name: name}}
	}
	take := func(rec *change.Record) bool {
		if !q.ReserveFor(rec) {
			return false
		}
		q.Push(rec)
		return true
	}
	if !take(of("a")) || !take(of("b")) || take(of("c")) {
		t.Fatal("want room for two objects and no third")
	}
	for range 1000 {
		if !take(of("a")) {
			t.Fatal("an object that is queued has no room for its next version")
		}
	}
	if q.Len() != 2 || len(q.places) > 16 {
		t.Fatalf("%d records in a ring of %d", q.Len(), len(q.places))
	}
}

// What is taken out of the middle again and again must not let the ring grow behind an oldest record that stays.
func TestI6PlacesThatAreFreeAreUsedAgain(t *testing.T) {
	q := NewQueue(Limit{Bytes: 1 << 20, Records: 10})
	reserveAndPush(q, record(1))
	for range 10_000 {
		rec := record(1)
		if !reserveAndPush(q, rec) {
			t.Fatal("no room")
		}
		if _, found := q.Remove(rec); !found {
			t.Fatalf("record %d is not queued", rec.Seq)
		}
		q.Cancel(rec.Size())
		if _, again := q.Remove(rec); again {
			t.Fatal("a record was taken out twice")
		}
	}
	if q.Len() != 1 || q.Oldest().Seq != 1 || len(q.places) > 16 {
		t.Fatalf("%d records, the oldest is %d, in a ring of %d", q.Len(), q.Oldest().Seq, len(q.places))
	}
}
