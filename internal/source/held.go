package source

import (
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
)

// maxHeld bounds the records that a difference holds back. A longer row of records that no sink takes leaves the one
// before it unmarked (I6).
const maxHeld = 1024

// held are the records that a difference holds back until a later one takes their place, so that the last one that each
// sink gets can be marked before it goes in line. They go in their order (I3), and what is held is not delivered yet
// for anybody: an attempt that fails lets it go, unmarked, and one that is cut off is repeated. It is pure.
type held struct{ records []*change.Record }

// add takes a record for the parts, and says how many of the first it takes the place of.
func (h *held) add(rec *change.Record, parts []*part) (n int) {
	h.records = append(h.records, rec)
	if rec.Filtered && len(h.records) <= maxHeld {
		return 0 // it is nobody's last, and takes nobody's place
	}
	for n < len(h.records)-1 && (len(h.records)-n > maxHeld || !h.mayBeLast(n, parts)) {
		n++
	}
	return n
}

// mark marks those that are last.
func (h *held) mark(parts []*part) {
	for i, rec := range h.records {
		rec.Last = h.mayBeLast(i, parts)
	}
}

// mayBeLast says whether the record is the last one so far for any of the sinks that it is for.
func (h *held) mayBeLast(i int, parts []*part) bool {
	rec := h.records[i]
	if rec.Filtered {
		return false
	}
	for _, p := range parts {
		if isFor(rec, p) && !h.isFollowed(i, p) {
			return true
		}
	}
	return false
}

// isFollowed says whether the part's sink gets a record after the one at i.
func (h *held) isFollowed(i int, p *part) bool {
	for _, later := range h.records[i+1:] {
		if !later.Filtered && isFor(later, p) {
			return true
		}
	}
	return false
}

// isFor says whether the part's sink gets the record. A part without a sink is all of them; a record for one of them is
// not its last.
func isFor(rec *change.Record, p *part) bool { return rec.Sink == "" || rec.Sink == p.owed.Sink }

// drop forgets the first n, which are in line.
func (h *held) drop(n int) { h.records = slices.Delete(h.records, 0, n) }

// has says whether a record of the key is held.
func (h *held) has(key change.Key) bool {
	return slices.ContainsFunc(h.records, func(rec *change.Record) bool { return rec.Key == key })
}
