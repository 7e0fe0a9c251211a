package task

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/ha/statelog"
)

// awaitCopy reads the log until it goes on behind the place, and the standby has what it has, and returns that place.
// Kafka may answer the end of a transaction before all readers see it, as awaitShown says.
func (s *standby) awaitCopy(t *testing.T, before []byte) []byte {
	t.Helper()
	for until := time.Now().Add(logPatience); ; {
		found, err := statelog.Look(t.Context(), s.log.place, statelog.Bid{Of: statelog.Identity{Cluster: s.log.cluster.Name}})
		if err == nil && bytes.Equal(found.End(), s.copy.Place()) && !bytes.Equal(found.End(), before) {
			return found.End()
		}
		if time.Now().After(until) {
			t.Fatalf("the standby does not follow: %v, %+v", err, s.status())
		}
		if err := s.follower.Step(t.Context()); err != nil {
			t.Logf("follow: %v", err)
		}
	}
}

// aStandbyTakesOverWithItsCopy reads only what came since, goes on in the same chain, and has the dead letters of the
// leader and no others.
func aStandbyTakesOverWithItsCopy(t *testing.T, r *logRig) {
	r.lead("a")
	letter := filepath.Join(r.cfg.State.Dir, "deadletters", "bus", "7.letter")
	r.must(os.MkdirAll(filepath.Dir(letter), 0o700))
	r.must(os.WriteFile(letter, []byte("letter"), 0o600))
	r.log.Changed("bus")("7.letter")
	r.commit(60)
	r.awaitLogged()
	second := r.other(0)
	left := filepath.Join(second.cfg.State.Dir, "deadletters", "bus", "6.letter")
	r.must(os.MkdirAll(filepath.Dir(left), 0o700))
	r.must(os.WriteFile(left, []byte("replayed since"), 0o600))
	b := second.standBy("b")
	before := b.awaitCopy(t, nil)
	r.commit(30)
	r.awaitLogged()
	if after := b.awaitCopy(t, before); !bytes.Equal(before[:8], after[:8]) {
		t.Errorf("the log went from %x to %x, and should go on", before, after)
	}
	r.must(b.close()) // the process ends, and the next one goes on with the directory
	b = second.standBy("b")
	if place := b.copy.Place(); place == nil {
		t.Error("the copy is lost with its process")
	}
	r.commit(5)
	r.awaitLogged()
	want := r.saved()
	second.leadAs(b)
	if have := second.saved(); !reflect.DeepEqual(have, want) {
		t.Errorf("the standby leads with %+v\nand the leader had %+v", have, want)
	}
	if content, err := os.ReadFile(filepath.Join(second.cfg.State.Dir, "deadletters", "bus", "7.letter")); err != nil || string(content) != "letter" {
		t.Errorf("the dead letter is %q, %v", content, err)
	}
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("a dead letter is back that nobody has any more: %v", err)
	}
	r.end()
	second.version = 200
	second.commit(1)
	second.awaitLogged()
	third := r.other(0).standBy("c")
	if after := third.awaitCopy(t, before); !bytes.Equal(before[:8], after[:8]) {
		t.Errorf("the log went from chain %x to %x, and the copy had all of it", before[:8], after[:8])
	}
	r.must(third.close())
	second.end()
}

// aCopyIsNeverNewerThanTheLog: a member that claimed the log and died before its copy was the state goes on from the
// log, though nobody else has claimed it since.
func aCopyIsNeverNewerThanTheLog(t *testing.T, r *logRig) {
	r.lead("a")
	r.commit(3)
	r.awaitLogged()
	second := r.other(100)
	b := second.standBy("b")
	b.awaitCopy(t, nil)
	r.commit(3)
	r.awaitLogged()
	r.end()
	place := b.log.place
	claimed, err := statelog.Claim(t.Context(), place, statelog.Bid{Of: statelog.Identity{Cluster: r.cluster.Name, UID: r.cluster.UID}, As: statelog.Claimant{Member: "b"}})
	r.must(err)
	r.must(claimed.Close(t.Context()))
	r.must(b.close())
	second.lead("b")
	if have := second.saved().Streams["pods"].ResourceVersion; have != "6" {
		t.Errorf("it goes on at %s, want 6", have)
	}
	second.end()
}

// aStandbyLeavesItsNewerStateAlone for as long as nobody else has led, and follows then.
func aStandbyLeavesItsNewerStateAlone(t *testing.T, r *logRig) {
	r.lead("a")
	r.commit(3)
	r.awaitLogged()
	r.end()
	r.saveUnlogged()
	b := r.standBy("a")
	r.must(b.follower.Step(t.Context()))
	if !b.copy.IsState() {
		t.Error("the standby gave up what the log lacks")
	}
	before, second := b.copy.Place(), r.other(100)
	second.lead("b")
	second.commit(1)
	second.awaitLogged()
	b.awaitCopy(t, before)
	if b.copy.IsState() {
		t.Error("the standby keeps a state that another one has left behind")
	}
	r.must(b.close())
	second.end()
}
