package chain

import (
	"hash/maphash"
	"strconv"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/scan/delta"
)

// Chain is what the log of one sink has as the newest state of each object, as far as that is proven. It is for one
// goroutine at a time.
type Chain struct {
	seed  maphash.Seed
	delta delta.Delta
	told  memory
	batch batch
}

// New makes a chain of a sink of whose log nothing is known.
func New() *Chain { return &Chain{seed: maphash.MakeSeed(), told: memory{most: mostRemembered}} }

// step is what a record does to what is known: of one object, or of all where it forgets them.
type step struct {
	object  uint64
	now     state
	forgets bool
}

// batch is what is under way to the sink.
type batch struct {
	steps []step           // one per record
	ahead map[uint64]state // what they make of the objects
	blank bool             // one of them forgets all: what is durable does not count
	patch []byte
}

// Begin begins a batch, and forgets one that was not Wrote.
func (c *Chain) Begin() {
	clear(c.batch.ahead)
	c.batch.steps, c.batch.blank, c.batch.patch = c.batch.steps[:0], false, c.batch.patch[:0]
}

// Next is the record as it is to go out after those before it in the batch: itself, or a copy that is a patch. The
// patch is valid until Begin.
func (c *Chain) Next(rec *change.Record) *change.Record {
	step := c.step(rec)
	base, known := c.newest(step.object)
	c.take(step)
	if !known || rec.Op != change.Updated || step.now == (state{}) || rec.Before == nil || c.form(rec.Before) != base.form {
		return rec
	}
	return c.patched(rec, base.version)
}

// patched is the record as a patch against the version of its object, where that is smaller.
func (c *Chain) patched(rec *change.Record, base uint64) *change.Record {
	start := len(c.batch.patch)
	all, ok := c.delta.Patch(c.batch.patch, rec.Before, rec.Object, len(rec.Object)-1)
	if !ok {
		return rec
	}
	c.batch.patch = all
	patched := *rec
	patched.Patch, patched.Base = all[start:len(all):len(all)], strconv.FormatUint(base, 10)
	return &patched
}

// Wrote notes that the first n records of the batch are durable, and that the others are not in the log.
func (c *Chain) Wrote(n int) {
	for _, s := range c.batch.steps[:n] {
		switch {
		case s.forgets:
			c.told.clear()
		case s.object != 0:
			c.told.put(s.object, s.now)
		}
	}
	c.Begin()
}

// Break forgets everything: nobody knows what the log has.
func (c *Chain) Break() {
	c.told.clear()
	c.Begin()
}

// step is what the record does.
func (c *Chain) step(rec *change.Record) step {
	switch {
	case rec.Op == change.SnapshotBegin, rec.Op == change.SnapshotEnd:
		return step{}
	case rec.Op == change.Gap && (rec.Key.Name == "" || rec.UID == ""):
		return step{forgets: true}
	case rec.UID == "":
		return step{}
	}
	return step{object: c.object(rec), now: c.state(rec)}
}

func (c *Chain) take(s step) {
	c.batch.steps = append(c.batch.steps, s)
	switch {
	case s.forgets:
		clear(c.batch.ahead)
		c.batch.blank = true
	case s.object != 0:
		if c.batch.ahead == nil {
			c.batch.ahead = map[uint64]state{}
		}
		c.batch.ahead[s.object] = s.now
	}
}

// newest is what the log has of the object when all before it in the batch is written.
func (c *Chain) newest(object uint64) (newest state, known bool) {
	newest, known = c.batch.ahead[object]
	if !known && !c.batch.blank {
		newest = c.told.get(object)
	}
	return newest, newest != state{}
}

// state is what the next update may be folded onto. What was cut to fit, and a dead letter that is sent again, are not
// what the next update starts from.
func (c *Chain) state(rec *change.Record) state {
	marked := rec.Remarks != nil && (rec.Remarks.Trimmed != "" || rec.Remarks.Replayed != "")
	if rec.Op == change.Gap || rec.Op == change.Deleted || rec.Object == nil || marked {
		return state{}
	}
	version, err := strconv.ParseUint(rec.ResourceVersion, 10, 64)
	if err != nil || version == 0 || strconv.FormatUint(version, 10) != rec.ResourceVersion {
		return state{}
	}
	return state{version, c.form(rec.Object)}
}

func (c *Chain) form(object []byte) uint64 { return maphash.Bytes(c.seed, object) }

// object is never 0. Notes have other names than the objects that they stand for, and the same uid.
func (c *Chain) object(rec *change.Record) uint64 {
	var h maphash.Hash
	h.SetSeed(c.seed)
	res := &rec.Stream.Resource
	for _, part := range [...]string{res.Group, res.Name, rec.UID} {
		h.WriteString(part)
		h.WriteByte(0)
	}
	return max(h.Sum64(), 1)
}

// mostRemembered is how many objects of a generation are remembered (I6): two take 10 MiB at most.
const mostRemembered = 1 << 17

// state is one of an object; the zero value is none that anything may be folded onto.
type state struct{ version, form uint64 }

// memory is what is known of the objects that changed last: a young generation, and the one before it. An object that
// has not changed while so many others did is forgotten with the old one.
type memory struct {
	most       int
	young, old map[uint64]state
}

// get is the zero state where nothing is known.
func (m *memory) get(object uint64) state {
	if s, known := m.young[object]; known {
		return s
	}
	return m.old[object]
}

// put remembers the state; the zero state is forgotten.
func (m *memory) put(object uint64, s state) {
	delete(m.old, object)
	if s == (state{}) {
		delete(m.young, object)
		return
	}
	if _, known := m.young[object]; !known && len(m.young) >= m.most {
		m.young, m.old = nil, m.young
	}
	if m.young == nil {
		m.young = map[uint64]state{}
	}
	m.young[object] = s
}

func (m *memory) clear() { m.young, m.old = nil, nil }
