package statelog

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// messageCost is what a message counts beside its bytes, since it has a slot.
const messageCost = 1 << 10

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
	unit  uint64 // the next one
	slots uint32 // how many there are
	free  []uint32
	live  []placed // parts that a reader may need, oldest first, with their units by count
	count uint64   // of units that this writer has written
	sizes
	opened uint64 // the first unit of the segment under way, by count
	pages  int    // bytes of the segment under way
}

// newWriter writes after what the survey has seen, in a chain of its own.
func newWriter(of Identity, c chain, seen *Survey) *writer {
	w := &writer{of: of, chain: c, slots: seen.slots}
	used := map[uint32]bool{}
	for _, l := range seen.found().live {
		w.live, used[l.slot] = append(w.live, placed{slot: l.slot}), true
	}
	for slot := range seen.slots {
		if !used[slot] {
			w.free = append(w.free, slot)
		}
	}
	return w
}

// isDue says whether another segment is to begin: what came since the last one is as large as its pages.
func (w *writer) isDue() bool { return w.since > max(w.segment, w.grain.Since) }

// unit is what is written at once.
type unit struct {
	changes checkpoint.Changes
	flags   byte
	saved   time.Time
}

// cut makes the parts of the unit.
func (w *writer) cut(u *unit) []part {
	w.count++
	contents := s2.Encode(nil, u.changes)
	if u.flags&opens != 0 {
		w.opened, w.pages = w.count, 0
	}
	parts := make([]part, (len(contents)+w.grain.Part-1)/w.grain.Part)
	for i := range parts {
		size := min(w.grain.Part, len(contents))
		parts[i] = part{
			of: w.of, chain: w.chain, unit: w.unit, number: i, parts: len(parts), flags: u.flags, slot: w.take(), saved: u.saved,
			contents: contents[:size],
		}
		contents = contents[size:]
		w.since, w.pages = w.since+size+messageCost, w.pages+size+messageCost
	}
	w.unit++
	return parts
}

// take is a slot that nobody needs.
func (w *writer) take() (slot uint32) {
	if len(w.free) > 0 {
		slot, w.free = w.free[0], w.free[1:]
	} else {
		slot = w.slots
		w.slots++
	}
	w.live = append(w.live, placed{unit: w.count, slot: slot})
	return slot
}

// closed notes that the segment under way is complete in the log: what is before it is not needed.
func (w *writer) closed() {
	n := 0
	for n < len(w.live) && w.live[n].unit < w.opened {
		w.free = append(w.free, w.live[n].slot)
		n++
	}
	w.live = slices.Clone(w.live[n:])
	w.segment, w.since = w.pages, 0
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
