package checkpoint

import "github.com/kubecdc/kubecdc/internal/change"

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
