package redo

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

const clusterUID = "0b6f3c1e-8a4d-4c39-9d2b-0a1b2c3d4e5f"

func pods() change.Stream {
	return change.Stream{Resource: change.Resource{Version: "v1", Name: "pods", Kind: "Pod"}}
}

// update is a record of the watch.
func update(stream change.Stream, name string, version int) *change.Record {
	text := strconv.Itoa(version)
	return &change.Record{
		Stream: &stream, Op: change.Updated, Key: change.Key{Namespace: "n", Name: name}, UID: "uid-" + name,
		ResourceVersion: text, Received: time.UnixMilli(1), Position: change.Position{ResourceVersion: text},
	}
}

// found is a record of a reconcile at the version.
func found(rec *change.Record, op change.Op, reason change.Reason, at string) *change.Record {
	rec.Op, rec.Position = op, change.Position{}
	rec.Snapshot = &change.Snapshot{ID: at + ".1", Reason: reason, ResourceVersion: at}
	return rec
}

// saved is a saved state of the pods.
type saved struct {
	position change.Position
	objects  map[change.Key]change.Entry
	ended    []string // uids, of deletes at the position
}

func (s *saved) Position(string) (change.Position, bool, error) {
	return s.position, s.position != change.Position{}, nil
}

func (s *saved) Ended(_, version, uid string) (bool, error) {
	return version == s.position.ResourceVersion && slices.Contains(s.ended, uid), nil
}

func (s *saved) Lookup(_ string, key change.Key) (change.Entry, bool, error) {
	entry, found := s.objects[key]
	return entry, found, nil
}

// logOf is what a log leaves that holds the records after the mark.
func logOf(t *testing.T, state State, records ...*change.Record) *Log {
	t.Helper()
	var ids []string
	for _, rec := range records {
		ids = append(ids, rec.ID(clusterUID).String())
	}
	return logOfIDs(t, state, ids...)
}

func logOfIDs(t *testing.T, state State, ids ...string) *Log {
	t.Helper()
	return readLog(t, Ledger{State: state}, nil, ids...)
}

// readLog is what a log leaves that holds the ids after the mark, while the records are on disk.
func readLog(t *testing.T, ledger Ledger, spooled []*change.Record, ids ...string) *Log {
	t.Helper()
	l := NewLog([]change.Stream{pods()}, false)
	reader := Reader{Ledger: ledger, ClusterUID: clusterUID, Foreign: func(id change.ID) (bool, error) {
		return !change.SameCluster(id.Cluster, clusterUID), nil
	}}
	reading := reader.Read(l.Present(), spooled)
	for _, id := range ids {
		reading.Take(id)
	}
	if err := reading.Err(); err != nil {
		t.Fatal(err)
	}
	l.Know(reading)
	return &l
}

// endAt ends a reconcile at the version.
func endAt(version int) *change.Record {
	at := strconv.Itoa(version)
	end := found(update(pods(), "", version), change.SnapshotEnd, change.Gone, at)
	end.UID, end.Position = "", change.Position{ResourceVersion: at, Complete: true}
	return end
}

// unseenC tells the sink that c is gone, as a reconcile at version 30 does that knows of it.
func unseenC() *change.Record {
	rec := found(update(pods(), "c", 4), change.Deleted, change.Gone, "30")
	rec.FinalStateUnknown, rec.Sink = true, "s"
	return rec
}

func anotherB(version int) *change.Record {
	rec := found(update(pods(), "b", version), change.Replaced, change.Gone, "20")
	rec.UID = "another"
	return rec
}
