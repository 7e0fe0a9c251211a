package chain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"github.com/kubecdc/kubecdc/internal/change"
)

// world is a sink whose log somebody folds, and the objects that it is told of.
type world struct {
	t       *testing.T
	random  *rand.Rand
	chain   *Chain
	objects map[string]*change.Record // as the exporter told the newest of them, to whomever
	version int
	log     []*change.Record
	read    int                       // of the log, by the reader
	folded  map[string]*change.Record // by name; nil is that the reader waits for a whole object
	patches int
}

func pods() *change.Stream {
	return &change.Stream{Resource: change.Resource{Version: "v1", Name: "pods", Kind: "Pod"}}
}

func newWorld(t *testing.T, seed uint64) *world {
	return &world{
		t: t, random: rand.New(rand.NewPCG(seed, 7)), chain: New(), objects: map[string]*change.Record{}, folded: map[string]*change.Record{},
	}
}

// next is something that happens to one of a few objects.
func (w *world) next() *change.Record {
	name := fmt.Sprint("pod-", w.random.IntN(4))
	before := w.objects[name]
	w.version++
	version := strconv.Itoa(w.version)
	rec := &change.Record{Stream: pods(), Op: change.Updated, Key: change.Key{Name: name}, UID: "u-" + name, ResourceVersion: version}
	spec := fmt.Sprintf(`{"long":"%0200d","a":%d,"list":[1,2,%d]}`, 7, w.random.IntN(4), w.random.IntN(4))
	rec.Object = fmt.Appendf(nil, `{"metadata":{"name":%q,"uid":%q,"resourceVersion":%q},"spec":%s}`, name, rec.UID, version, spec)
	if before != nil {
		rec.Before = before.Object
	}
	switch kind := w.random.IntN(20); {
	case before == nil:
		rec.Op = change.Added
	case kind == 0:
		rec.Op = change.Deleted
		delete(w.objects, name)
		return rec
	case kind == 1:
		rec.Op, rec.Snapshot = change.Replaced, &change.Snapshot{ID: version}
	case kind == 2:
		rec.Remarks = &change.Remarks{Trimmed: ".spec.list"}
		w.objects[name] = rec
		trimmed := *rec
		trimmed.Object = fmt.Appendf(nil, `{"metadata":{"name":%q,"uid":%q,"resourceVersion":%q}}`, name, rec.UID, version)
		return &trimmed
	case kind == 3: // sent again, an old state
		rec.Remarks = &change.Remarks{Replayed: change.History}
		return rec
	case kind == 4:
		return change.NoteOf(rec, "too_large", "")
	case kind == 5:
		return &change.Record{Stream: pods(), Op: change.Gap, ResourceVersion: version, Snapshot: &change.Snapshot{ID: version}}
	}
	w.objects[name] = rec
	return rec
}

// batch writes a batch: all of it, what is before a rejected one, or what a failure left, whose rest is tried again.
func (w *world) batch() {
	var rest []*change.Record
	for range 1 + w.random.IntN(6) {
		if rec := w.next(); w.random.IntN(8) > 0 { // else a filter or a queue that coalesces leaves it out
			rest = append(rest, rec)
		}
	}
	for len(rest) > 0 {
		var out []*change.Record
		w.chain.Begin()
		for _, rec := range rest {
			out = append(out, w.chain.Next(rec))
		}
		switch n := w.random.IntN(len(rest) + 1); w.random.IntN(6) {
		case 0: // the first of the others is rejected, and a note stands for it
			w.write(out[:n])
			w.chain.Wrote(n)
			if rest = rest[n:]; len(rest) > 0 {
				rest[0] = change.NoteOf(rest[0], "invalid", "")
			}
		case 1: // nobody knows but who reads the log
			w.write(out[:n])
			w.chain.Break()
			rest = rest[n:]
		default:
			w.write(out)
			w.chain.Wrote(len(out))
			rest = nil
		}
	}
	if w.random.IntN(30) == 0 { // a new process
		w.chain = New()
	}
}

// write puts copies into the log: what a patch is made in is used again.
func (w *world) write(records []*change.Record) {
	for _, rec := range records {
		stored := *rec
		stored.Patch = bytes.Clone(rec.Patch)
		w.log = append(w.log, &stored)
	}
}

// fold reads on as a consumer does.
func (w *world) fold() {
	for ; w.read < len(w.log); w.read++ {
		rec := w.log[w.read]
		name := rec.Key.Name
		switch {
		case rec.Op == change.Gap && name == "":
			clear(w.folded)
		case rec.Op == change.Gap, rec.Op == change.Deleted, rec.Remarks != nil:
			delete(w.folded, name)
		case rec.Patch == nil:
			w.folded[name] = rec
		default:
			w.apply(rec)
			w.folded[name] = rec
		}
	}
}

func (w *world) apply(rec *change.Record) {
	w.t.Helper()
	w.patches++
	held := w.folded[rec.Key.Name]
	if held == nil || held.ResourceVersion != rec.Base {
		w.t.Fatalf("a patch of %s against version %s follows %+v", rec.Key, rec.Base, held)
	}
	patch, err := jsonpatch.DecodePatch(rec.Patch)
	if err != nil {
		w.t.Fatalf("%s: %v", rec.Patch, err)
	}
	folded, err := patch.Apply(held.Object)
	if err != nil || !equal(w.t, folded, rec.Object) {
		w.t.Fatalf("%s onto %s is %s, %v; want %s", rec.Patch, held.Object, folded, err, rec.Object)
	}
	if len(rec.Patch) >= len(rec.Object) {
		w.t.Errorf("a patch of %d bytes for an object of %d", len(rec.Patch), len(rec.Object))
	}
}

func equal(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal(a, &x); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &y); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(x, y)
}

// TestI3PatchesFoldWhateverBecomesOfTheRecordsBetween: filters, merges, notes, cuts, replays, gaps, failures, starts.
func TestI3PatchesFoldWhateverBecomesOfTheRecordsBetween(t *testing.T) {
	patches, records := 0, 0
	for seed := range uint64(100) {
		w := newWorld(t, seed)
		if seed%2 == 0 {
			w.chain.told.most = 2
		}
		for range 60 {
			w.batch()
			w.fold()
		}
		patches, records = patches+w.patches, records+len(w.log)
	}
	if patches < records/4 {
		t.Errorf("%d of %d records are patches", patches, records)
	}
}

// TestAPatchIsOfWhatWasToldLast says of each record after one that was told whether it goes out as a patch.
func TestAPatchIsOfWhatWasToldLast(t *testing.T) {
	object := func(version, value string) []byte {
		return fmt.Appendf(nil, `{"metadata":{"uid":"u","resourceVersion":%q},"spec":{"a":%q,"b":"what stays as it is in all of them"}}`, version, value)
	}
	first := &change.Record{Stream: pods(), Op: change.Added, Key: change.Key{Name: "a"}, UID: "u", ResourceVersion: "5", Object: object("5", "1")}
	for name, c := range map[string]struct {
		edit func(*change.Record)
		want string
	}{
		"an update":                   {func(*change.Record) {}, "5"},
		"nothing is kept":             {func(r *change.Record) { r.Before = nil }, ""},
		"something was between":       {func(r *change.Record) { r.Before = object("6", "1") }, ""},
		"another object":              {func(r *change.Record) { r.UID = "v" }, ""},
		"another resource":            {func(r *change.Record) { r.Stream = &change.Stream{Resource: change.Resource{Group: "x", Name: "pods"}} }, ""},
		"no uid":                      {func(r *change.Record) { r.UID = "" }, ""},
		"of a snapshot":               {func(r *change.Record) { r.Op = change.Replaced }, ""},
		"a sync":                      {func(r *change.Record) { r.Op = change.Sync }, ""},
		"added":                       {func(r *change.Record) { r.Op = change.Added }, ""},
		"deleted":                     {func(r *change.Record) { r.Op = change.Deleted }, ""},
		"sent again":                  {func(r *change.Record) { r.Remarks = &change.Remarks{Replayed: change.Current} }, ""},
		"cut to fit":                  {func(r *change.Record) { r.Remarks = &change.Remarks{Trimmed: ".spec"} }, ""},
		"a version that is no number": {func(r *change.Record) { r.ResourceVersion = "x7" }, ""},
		"another object altogether":   {func(r *change.Record) { r.Object = []byte(`{"x":1}`) }, ""},
		"no object":                   {func(r *change.Record) { r.Object = []byte(`[]`) }, ""},
	} {
		c2 := New()
		c2.Begin()
		c2.Next(first)
		c2.Wrote(1)
		rec := &change.Record{
			Stream: pods(), Op: change.Updated, Key: change.Key{Name: "a"}, UID: "u", ResourceVersion: "7", Object: object("7", "2"), Before: object("5", "1"),
		}
		c.edit(rec)
		if got := c2.Next(rec); got.Base != c.want || (got.Patch != nil) != (c.want != "") {
			t.Errorf("%s: a patch of %q (%s), want one of %q", name, got.Base, got.Patch, c.want)
		}
	}
}

// TestI6OnlyWhatChangedLastIsRemembered: so many objects at most, and those that change are not forgotten.
func TestI6OnlyWhatChangedLastIsRemembered(t *testing.T) {
	m := memory{most: 10}
	for i := range uint64(1000) {
		m.put(1, state{version: i + 1})
		m.put(i+2, state{version: 1})
		if n := len(m.young) + len(m.old); n > 20 {
			t.Fatalf("%d are remembered", n)
		}
	}
	if m.get(1) != (state{version: 1000}) || m.get(1001) == (state{}) || m.get(2) != (state{}) {
		t.Errorf("%+v, %+v and %+v are remembered", m.get(1), m.get(1001), m.get(2))
	}
	m.put(1, state{})
	if m.get(1) != (state{}) {
		t.Error("what is gone is remembered")
	}
}
