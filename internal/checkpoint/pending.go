package checkpoint

import "github.com/kubecdc/kubecdc/internal/change"

// Written gives each the records that were not given back by Advance and that the listener has acknowledged, less those
// that it was spared, in their order. It looks at all of them.
func (t *Tracker) Written(listener int, each func(*change.Record)) {
	bit := uint64(1) << listener
	for i := range t.length {
		if slot := t.at(i); slot.wanted&bit != 0 && (slot.missing|slot.spared)&bit == 0 {
			each(slot.rec)
		}
	}
}

// Newest is the last record that was added, was not given back by Advance, and is chosen; nil where there is none. It
// looks at all of them.
func (t *Tracker) Newest(chosen func(*change.Record) bool) *change.Record {
	for i := t.length - 1; i >= 0; i-- {
		if rec := t.at(i).rec; chosen(rec) {
			return rec
		}
	}
	return nil
}
