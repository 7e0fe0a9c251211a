package checkpoint

import "github.com/cockroachdb/pebble/v2"

// Journal is told what is written, in order, when it is durable. It returns at once and calls nothing back.
type Journal interface {
	// Record is called with what one write has changed, which is the journal's from then on.
	Record(changes Changes)
}

// recorder tells a journal what is written. The database's lock guards it. A nil recorder does nothing.
type recorder struct{ to Journal }

// changes are those of a batch that the journal is to be told of.
func (r *recorder) changes(b *pebble.Batch) (Changes, error) {
	if r == nil {
		return nil, nil
	}
	return changesOf(b)
}

// tell tells what is durable.
func (r *recorder) tell(c Changes) {
	if r != nil {
		r.to.Record(c)
	}
}
