package checkpoint

import "github.com/cockroachdb/pebble/v2"

// Journal is told what is written, in order, when it is durable. It returns at once and calls nothing back.
type Journal interface {
	// Record is called with what one write has changed, which is the journal's from then on, and says whether records
	// are on this disk alone now: a sink's spool is not empty. Opening the state calls it once, without changes.
	Record(changes Changes, onDisk bool)
}

// recorder tells a journal what is written. The database's lock guards it. A nil recorder does nothing.
type recorder struct {
	to      Journal
	spooled map[string]bool // sinks whose spools are not empty
}

// changes are those of a batch that the journal is to be told of.
func (r *recorder) changes(b *pebble.Batch) (Changes, error) {
	if r == nil {
		return nil, nil
	}
	c, err := changesOf(b)
	if err == nil {
		err = c.each(r.note)
	}
	return c, err
}

// tell tells what is durable.
func (r *recorder) tell(c Changes) {
	if r != nil {
		r.to.Record(c, len(r.spooled) > 0)
	}
}

// note remembers which spools are empty.
func (r *recorder) note(o *one) error {
	if o.key[0] != tableSpooled || o.kind == changeClear {
		return nil
	}
	name := string(o.key[1:])
	if delete(r.spooled, name); o.kind == changeRemove {
		return nil
	}
	spool, err := parseSpool(o.value)
	for _, extent := range spool {
		if extent.First < extent.Next {
			r.spooled[name] = true
		}
	}
	return err
}
