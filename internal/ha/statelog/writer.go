package statelog

import (
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// Grain is how finely the log is cut, in bytes.
type Grain struct {
	Part  int // of a unit in one message: below the limits that brokers have by default
	Page  int // of the rows of a page, about
	Since int // of changes below which no segment begins
}

// writer makes parts of units, and knows which slots may be used again. It is pure.
type writer struct {
	of    Identity
	grain Grain
	chain chain
	unit  uint64   // the next one
	seen  *Survey  // of the log, with what this writer has made
	free  []uint32 // slots that nobody needs, oldest first
}

// newWriter writes after what the survey has seen, in a chain of its own.
func newWriter(of Identity, c chain, seen *Survey) *writer {
	w := &writer{of: of, chain: c, seen: seen}
	w.release()
	return w
}

// isDue says whether another segment is to begin: what came since the last one is as large as its pages.
func (w *writer) isDue() bool { return w.seen.now.since > max(w.seen.now.segment, w.grain.Since) }

// unit is what is written at once.
type unit struct {
	changes checkpoint.Changes
	flags   byte
	saved   time.Time
}

// cut makes the parts of the unit. Where it completes a segment, what is before that is not needed any more once they
// are in the log: nothing is cut before.
func (w *writer) cut(u *unit) []part {
	contents := s2.Encode(nil, u.changes)
	parts := make([]part, (len(contents)+w.grain.Part-1)/w.grain.Part)
	for i := range parts {
		size := min(w.grain.Part, len(contents))
		parts[i] = part{
			of: w.of, chain: w.chain, unit: w.unit, number: i, parts: len(parts), flags: u.flags, slot: w.take(), saved: u.saved,
			contents: contents[:size],
		}
		contents = contents[size:]
		w.seen.add(&parts[i])
	}
	w.unit++
	if u.flags&closes != 0 {
		w.release()
	}
	return parts
}

// take is a slot that nobody needs.
func (w *writer) take() (slot uint32) {
	if len(w.free) == 0 {
		return w.seen.slots
	}
	slot, w.free = w.free[0], w.free[1:]
	return slot
}

// release frees the slots of parts that no reader needs.
func (w *writer) release() {
	used := map[uint32]bool{}
	for _, slot := range w.free {
		used[slot] = true
	}
	for _, l := range w.seen.found().live {
		used[l.slot] = true
	}
	for slot := range w.seen.slots {
		if !used[slot] {
			w.free = append(w.free, slot)
		}
	}
}

// maxUnit is more bytes than the changes of a unit have: what waits, a page, and the largest row or file.
const maxUnit = 64 << 20

// errUnit says that the parts of a unit do not make one.
var errUnit = errors.New("a unit of the log of the state is damaged")

// join makes the unit's changes of its contents.
func join(contents []byte) (checkpoint.Changes, error) {
	if size, err := s2.DecodedLen(contents); err != nil || size > maxUnit {
		return nil, errUnit
	}
	raw, err := s2.Decode(nil, contents)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnit, err)
	}
	return raw, nil
}

// id names the part, as logs of the broker show it.
func (p *part) id() string {
	return fmt.Sprintf("%s/%d/%d", hex.EncodeToString(p.chain[:]), p.unit, p.number)
}
