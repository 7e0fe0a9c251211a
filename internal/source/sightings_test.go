package source

import (
	"github.com/kubecdc/kubecdc/internal/change"
)

// plainSightings are sightings that sum every record up at once.
type plainSightings map[seenRecord]sighting

func (p plainSightings) has(rec *change.Record) bool {
	seen, found := p[newSeenRecord(rec)]
	return found && seen == newSighting(rec.Object, seen.watch)
}

func (p plainSightings) add(rec *change.Record, watch int) error {
	now := newSighting(rec.Object, watch)
	before, found := p[newSeenRecord(rec)]
	if found && before.watch == watch && before != now {
		return errSameVersion
	}
	p[newSeenRecord(rec)] = now
	return nil
}
