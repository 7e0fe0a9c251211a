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

// TestI2SightingsAreWhatPlainOnesAre compares them over versions of one to four records, of which some come again, in
// the same watch or in another one, and some with other content.
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
		_, known := plain[newSeenRecord(rec)]
		if seen.has(rec) != plain.has(rec) || seen.knows(rec) != known {
			t.Fatalf("step %d: has and knows are %t and %t, want %t and %t", step, seen.has(rec), seen.knows(rec), plain.has(rec), known)
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

// TestALoneRecordIsNotSummedUp: that is what holding it is for.
func TestALoneRecordIsNotSummedUp(t *testing.T) {
	c := newCursor(change.Position{ResourceVersion: "1", Complete: true})
	for version := 2; version < 10; version++ {
		admitted(t, &c, watched(change.Updated, "a", strconv.Itoa(version)))
		if len(c.seen.settled) > 0 {
			t.Fatalf("the only record of version %d was summed up", version)
		}
	}
	if admitted(t, &c, watched(change.Updated, "a", "9")) || len(c.seen.settled) != 1 {
		t.Error("the second one at the version was told again, or did not make the first one be summed up")
	}
}
