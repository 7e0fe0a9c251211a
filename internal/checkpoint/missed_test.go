package checkpoint

import (
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// openMissing opens a store whose sink was given shop/a at version 5, and is absent since.
func openMissing(t *testing.T) (s *Store, all change.Stream, absent Subscription) {
	t.Helper()
	s, all, absent = open(t, t.TempDir()), in(""), Subscription{"out", "pods"}
	must(t, s.Commit(Batch{Records: []*change.Record{pod(all, change.Added, "shop", "a", "5")}, Taken: []Subscription{absent}}))
	must(t, s.Commit(Batch{Absent: []Absence{{Subscription: absent, Since: time.UnixMilli(7)}}}))
	return s, all, absent
}

// TestI3AMissedDeleteIsNotOlderThanTheLog: a crash left a version in the log of a sink that the state does not know.
// When the sink is back, the object is gone, and the delete has the version that the sink was told last.
func TestI3AMissedDeleteIsNotOlderThanTheLog(t *testing.T) {
	s, all, subscription := openMissing(t)
	held := Held{Subscription: subscription, Entry: change.Entry{Key: change.Key{Namespace: "shop", Name: "a"}, UID: "uid-a", ResourceVersion: "6"}, Exists: true, Ahead: "e"}
	must(t, s.Commit(Batch{Held: []Held{held}}))
	gone := pod(all, change.Deleted, "shop", "a", "5")
	gone.FinalStateUnknown, gone.Position.ResourceVersion = true, "9"
	must(t, s.Commit(Batch{Records: []*change.Record{gone}}))
	missed, err := s.Missed(subscription, "e")
	must(t, err)
	if len(missed) != 1 || missed[0] != held.Entry {
		t.Errorf("the sink is told that %+v are gone, want %+v", missed, held.Entry)
	}
}

// TestI8AMissedDeleteHasNotTheVersionOfTheEnd: the log of a sink has a version of a history that is over. In the next
// one the object ends at the same version, and that delete has the object with it.
func TestI8AMissedDeleteHasNotTheVersionOfTheEnd(t *testing.T) {
	for end, want := range map[string]string{"6": "5", "7": "6"} {
		s, all, subscription := openMissing(t)
		entry := change.Entry{Key: change.Key{Namespace: "shop", Name: "a"}, UID: "uid-a", ResourceVersion: "6"}
		must(t, s.Commit(Batch{Held: []Held{{Subscription: subscription, Entry: entry, Exists: true, Ahead: "before"}}}))
		must(t, s.Commit(Batch{Records: []*change.Record{pod(all, change.Deleted, "shop", "a", end)}}))
		missed, err := s.Missed(subscription, "e")
		must(t, err)
		if len(missed) != 1 || missed[0].ResourceVersion != want {
			t.Errorf("of an object that ended at %s the sink is told that %+v are gone, want version %s", end, missed, want)
		}
	}
}

// TestI4ADeleteOnDiskThatIsLeftOutIsMissed: a sink comes back, and a delete is on disk for it. The process is killed
// before the sink is told, and the next one leaves the delete out, since its stream is not configured then.
func TestI4ADeleteOnDiskThatIsLeftOutIsMissed(t *testing.T) {
	subscription := Subscription{"out", "pods"}
	entry := change.Entry{Key: change.Key{Namespace: "shop", Name: "a"}, UID: "uid-a", ResourceVersion: "6"}
	ends, onDisk := Held{Subscription: subscription, Entry: entry}, Held{Subscription: subscription, Entry: entry, OnDisk: true}
	leftOut := Held{Subscription: subscription, Entry: entry, Exists: true}
	leftOut.Entry.ResourceVersion = "5"
	for _, c := range []struct {
		held []Held
		want int
	}{{[]Held{onDisk}, 0}, {[]Held{onDisk, leftOut}, 1}, {[]Held{ends, onDisk, leftOut}, 0}} {
		s := open(t, t.TempDir())
		must(t, s.Commit(Batch{Absent: []Absence{{Subscription: subscription, Since: time.UnixMilli(7)}}}))
		for _, h := range c.held {
			must(t, s.Commit(Batch{Held: []Held{h}}))
		}
		missed, err := s.Missed(subscription, "e")
		must(t, err)
		if len(missed) != c.want || c.want > 0 && missed[0] != leftOut.Entry {
			t.Errorf("after %+v the sink is told that %+v are gone, want %d", c.held, missed, c.want)
		}
	}
}

// TestI8AMissedDeleteKeepsItsVersionBehindAnotherHistory: the log of a sink is read after it has missed a delete. The
// version that it has counts where it is of the present history, and says nothing where it is of another one.
func TestI8AMissedDeleteKeepsItsVersionBehindAnotherHistory(t *testing.T) {
	for ahead, want := range map[string]string{"before": "5", "e": "6"} {
		s, all, subscription := openMissing(t)
		must(t, s.Commit(Batch{Records: []*change.Record{pod(all, change.Deleted, "shop", "a", "7")}}))
		entry := change.Entry{Key: change.Key{Namespace: "shop", Name: "a"}, UID: "uid-a", ResourceVersion: "6"}
		must(t, s.Commit(Batch{Held: []Held{{Subscription: subscription, Entry: entry, Exists: true, Ahead: ahead}}}))
		missed, err := s.Missed(subscription, "e")
		must(t, err)
		if len(missed) != 1 || missed[0].ResourceVersion != want {
			t.Errorf("behind a version of history %s the sink is told that %+v are gone, want version %s", ahead, missed, want)
		}
	}
}

// TestI4AnObjectThatASinkIsGivenAgainIsMissedOnceMore: the log of a sink that comes back has the delete of an object. A
// restored etcd has it again, and the sink is told so behind its gap. It leaves before its return is over, and then the
// object goes.
func TestI4AnObjectThatASinkIsGivenAgainIsMissedOnceMore(t *testing.T) {
	s := open(t, t.TempDir())
	all, subscription := in(""), Subscription{"out", "pods"}
	absent, owed := Absence{Subscription: subscription, Since: time.UnixMilli(7)}, change.Owed{Sink: "out", Reason: change.Absent, Generation: 7}
	must(t, s.Commit(Batch{Taken: []Subscription{subscription}}))
	must(t, s.Commit(Batch{Absent: []Absence{absent}, PendingSnapshots: []PendingSnapshot{{Stream: "pods", Owed: owed}}}))
	entry := change.Entry{Key: change.Key{Namespace: "shop", Name: "a"}, UID: "uid-a", ResourceVersion: "6"}
	must(t, s.Commit(Batch{Held: []Held{{Subscription: subscription, Entry: entry, Ahead: "before"}}}))
	gap := &change.Record{Stream: &all, Op: change.Gap, Sink: "out", Snapshot: &change.Snapshot{Reason: change.Absent, Generation: 7}}
	must(t, s.Commit(Batch{Records: []*change.Record{gap, pod(all, change.Replaced, "shop", "a", "5")}}))
	must(t, s.Commit(Batch{Absent: []Absence{absent}}))
	must(t, s.Commit(Batch{Records: []*change.Record{pod(all, change.Deleted, "shop", "a", "7")}}))
	missed, err := s.Missed(subscription, "e")
	must(t, err)
	if len(missed) != 1 || missed[0].ResourceVersion != "5" {
		t.Errorf("the sink is told that %+v are gone, want the object at version 5", missed)
	}
}

// TestI3AnOlderExporterTakesADeleteOnDiskForTold, since it knows nothing else that keeps it from telling the delete.
func TestI3AnOlderExporterTakesADeleteOnDiskForTold(t *testing.T) {
	s, subscription := open(t, t.TempDir()), Subscription{"out", "pods"}
	must(t, s.Commit(Batch{Absent: []Absence{{Subscription: subscription, Since: time.UnixMilli(7)}}}))
	entry := change.Entry{Key: change.Key{Namespace: "shop", Name: "a"}, UID: "uid-a", ResourceVersion: "6"}
	must(t, s.Commit(Batch{Held: []Held{{Subscription: subscription, Entry: entry, OnDisk: true}}}))
	value, found, err := s.absences.get(missedKey(subscription, entry.Key, entry.UID))
	must(t, err)
	if ahead, _, err := cutText(value); err != nil || !found || ahead != told {
		t.Errorf("it is noted as %q: %t, %v", ahead, found, err)
	}
}
