package source

import (
	"errors"
	"hash/crc32"

	"github.com/kubecdc/kubecdc/internal/change"
)

// maxSeen bounds the records of one version that are remembered (I6); 1,000 Events expire together where the API
// server's flags are the default ones. What is not remembered may be told twice, and is never dropped.
const maxSeen = 1 << 16

// sightings are the records of one resourceVersion that went into the line in this process, maxSeen at most.
//
// Nearly always it is one, and nobody asks for it: so its content is held, and is summed up only when another record
// comes at its version, or another watch begins. To hold it costs nothing, since its key is a part of it.
type sightings struct {
	settled map[seenRecord]sighting
	lone    lone // the only one, while settled is empty
}

// lone is a record whose content is not summed up yet.
type lone struct {
	is     bool
	key    seenRecord
	object []byte
	watch  int
}

// sighting is the content of a record, and the watch that brought it last.
type sighting struct {
	size  int
	sum   uint32 // CRC-32C
	watch int
}

func newSighting(object []byte, watch int) sighting {
	return sighting{len(object), crc32.Checksum(object, crc32.MakeTable(crc32.Castagnoli)), watch}
}

// seenRecord tells the records of one resourceVersion apart.
type seenRecord struct {
	key change.Key
	uid string
	op  change.Op
}

func newSeenRecord(rec *change.Record) seenRecord { return seenRecord{rec.Key, rec.UID, rec.Op} }

// errSameVersion says that the server changes objects and leaves their resourceVersion as it was.
var errSameVersion = errors.New("the watch sent two states of the object at one resourceVersion")

// forget is for another version.
func (s *sightings) forget() {
	s.lone = lone{}
	if len(s.settled) > 0 {
		clear(s.settled)
	}
}

// settle sums the lone one up.
func (s *sightings) settle() {
	if !s.lone.is {
		return
	}
	if s.settled == nil {
		s.settled = map[seenRecord]sighting{}
	}
	s.settled[s.lone.key] = newSighting(s.lone.object, s.lone.watch)
	s.lone = lone{}
}

// has says whether the record is in line already. One with other content is not, unless it was written by an API server
// of another version, which nobody can tell: so it is told rather than lost.
func (s *sightings) has(rec *change.Record) bool {
	s.settle()
	seen, found := s.settled[newSeenRecord(rec)]
	return found && seen == newSighting(rec.Object, seen.watch)
}

// add remembers the record, which the watch of that number brought.
func (s *sightings) add(rec *change.Record, watch int) error {
	key := newSeenRecord(rec)
	if !s.lone.is && len(s.settled) == 0 {
		s.lone = lone{true, key, rec.Object, watch}
		return nil
	}
	s.settle()
	now := newSighting(rec.Object, watch)
	before, found := s.settled[key]
	switch {
	case found && before.watch == now.watch && before != now:
		return errSameVersion
	case found || len(s.settled) < maxSeen:
		s.settled[key] = now
	}
	return nil
}

// isLike says whether both are of the same records.
func (s *sightings) isLike(other *sightings) bool {
	s.settle()
	other.settle()
	if len(s.settled) != len(other.settled) {
		return false
	}
	for key := range s.settled {
		if _, found := other.settled[key]; !found {
			return false
		}
	}
	return true
}
