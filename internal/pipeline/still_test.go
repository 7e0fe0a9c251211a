package pipeline

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/line"
)

// A crash left records in the log of a sink that opens late in the lives that follow. They come again before that and
// go to disk, and the position stands still meanwhile: they share its version, or a full snapshot found them. So the
// inventory is after them when the log is read, and the sink is given them from disk all the same.
func TestI3WhatWentToDiskWhileThePositionStoodStillIsNotWrittenAgain(t *testing.T) {
	for what, of := range map[string]func(name string, version int) *change.Record{
		"sharing a version": func(name string, _ int) *change.Record { return deleted(name, 9) },
		"corrections":       correction,
	} {
		for lives, others := range []int{0, line.BatchLimit().Records} { // more than what is always compared
			t.Run(fmt.Sprintf("%s, away for %d lives", what, lives), func(t *testing.T) {
				again := []*change.Record{of("a", 2), of("b", 3), of("c", 4)}
				target := &late{may: make(chan struct{})}
				r := lateAfterACrash(t, target, again[:2])
				r.awayFor(lives, target, func(line *Inlet) {
					for i := range others {
						r.push(line, of(fmt.Sprint("x", i), 2))
					}
					r.push(line, again...)
				})
				for _, rec := range again {
					short := fmt.Sprintf("%s/%s/deleted", rec.Key.Name, rec.ResourceVersion)
					if n := strings.Count(target.short(), short); n != 1 {
						t.Errorf("the log has %s %d times", short, n)
					}
				}
			})
		}
	}
}

// correction is a delete that a full snapshot found, and that no watch told of.
func correction(name string, version int) *change.Record {
	rec := found(deleted(name, version), change.Deleted, change.Requested, "9")
	rec.FinalStateUnknown = true
	return rec
}

// lateAfterACrash is a rig whose first life delivered everything up to version 9, and whose sink then was given the
// records that a crash kept from being saved.
func lateAfterACrash(t *testing.T, target *late, unsaved []*change.Record) *rig {
	t.Helper()
	close(target.may)
	r := newRig(t, spooling("s", target, 100))
	if err := r.life(func(line *Inlet) {
		r.push(line, update(pods(), "a", 2), update(pods(), "b", 3), update(pods(), "c", 4), deleted("z", 9))
		r.await("the last", func() bool { return strings.HasSuffix(target.short(), "z/9/deleted") })
	}); err != nil {
		t.Fatal(err)
	}
	for _, rec := range unsaved {
		target.log = append(target.log, idOf(rec))
	}
	return r
}

// awayFor brings records to disk while the sink is not open, which it is after so many lives. The last is of c.
func (r *rig) awayFor(lives int, target *late, bring func(line *Inlet)) {
	r.t.Helper()
	r.config.OpenGrace, r.config.Sinks[0].Queue = time.Millisecond, fifo.Limit{Bytes: 1 << 20, Records: 2}
	target.may = make(chan struct{})
	for life := range lives + 1 {
		if err := r.life(func(line *Inlet) {
			if life == 0 {
				bring(line)
				r.drain(line, pods())
			}
			if position := r.position(pods()); position != "9" {
				r.t.Errorf("the position is %s, want 9", position)
			}
			if life == lives {
				close(target.may)
				r.await("the last", func() bool { return strings.Count(target.short(), "c/") > 1 })
			}
		}); err != nil {
			r.t.Fatal(err)
		}
	}
}

// What was on disk before the positions were taken that the log is compared with comes from there first, and says
// nothing of what is saved: a mark may hang back while a sink takes much from disk, and nothing of that is kept (I6).
func TestI6WhatWasOnDiskBeforeKeepsNothingOfWhatIsSaved(t *testing.T) {
	target := &memory{}
	r := newRig(t, spooling("s", target, 4))
	if err := r.life(func(line *Inlet) {
		r.push(line, update(pods(), "a", 2), deleted("a", 4))
		r.await("the first", func() bool { return strings.HasSuffix(target.short(), "a/4/deleted") })
		r.drain(line, pods())
		target.hang()
		for version := 10; version < 20; version++ {
			r.push(line, update(services(), "x", version))
		}
		r.drain(line, services()) // to disk
	}); err != nil {
		t.Fatal(err)
	}
	target.fault = nil
	target.log = append(target.log, idOf(deleted("a", 4))) // after the mark, and saved
	if err := r.life(func(*Inlet) {
		r.await("the last", func() bool { return strings.HasSuffix(target.short(), "x/19/updated") })
	}); err != nil {
		t.Fatal(err)
	}
	if err := r.life(func(*Inlet) {}); err != nil {
		t.Fatal(err)
	}
	if last, end := target.opens[len(target.opens)-1], fmt.Sprint(len(target.log)); string(last) != end {
		t.Errorf("the log is opened at mark %s, want its end %s: all of it is saved", last, end)
	}
}
