package source

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

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

func watched(op change.Op, name, version string) *change.Record {
	return &change.Record{Op: op, Key: keyOf(name), UID: "uid-" + name, ResourceVersion: version}
}

// TestI2SightingsAreWhatPlainOnesAre compares them over versions of one to four records, of which some come again, in
// the same watch or in another one, and some with other content: within one watch that is an error, and in another one
// it is told.
func TestI2SightingsAreWhatPlainOnesAre(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	var seen sightings
	plain, watch, version, refused := plainSightings{}, 1, 1, 0
	for step := range 20_000 {
		switch rnd.IntN(8) {
		case 0:
			seen.settle()
			watch++
		case 1, 2:
			seen.forget()
			clear(plain)
			version++
		}
		rec := watched(change.Updated, strconv.Itoa(rnd.IntN(4)), strconv.Itoa(version))
		rec.Object = fmt.Appendf(nil, "state %d", rnd.IntN(8)/7)
		if seen.has(rec) != plain.has(rec) {
			t.Fatalf("step %d: has is %t, want %t", step, seen.has(rec), plain.has(rec))
		}
		got, want := seen.add(rec, watch), plain.add(rec, watch)
		if got != want {
			t.Fatalf("step %d: %v, want %v", step, got, want)
		}
		if want != nil {
			refused++
		}
	}
	if refused == 0 {
		t.Error("no record came with other content in one watch")
	}
}

// TestI6WhatIsSeenAtOneVersionIsBounded: what is not remembered may be told twice. A lone record is not summed up.
func TestI6WhatIsSeenAtOneVersionIsBounded(t *testing.T) {
	var seen sightings
	for i := range maxSeen + 10 {
		must(t, seen.add(watched(change.Deleted, strconv.Itoa(i), "20"), 1))
		if i == 0 && len(seen.settled) > 0 {
			t.Error("the only record of its version was summed up")
		}
	}
	if len(seen.settled) != maxSeen {
		t.Errorf("%d records are remembered, want %d", len(seen.settled), maxSeen)
	}
	if !seen.has(watched(change.Deleted, "1", "20")) || seen.has(watched(change.Deleted, strconv.Itoa(maxSeen+1), "20")) {
		t.Error("what is remembered is not, or what is not is")
	}
}
