package delivery

import (
	"slices"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/line"
	"github.com/kubecdc/kubecdc/internal/redo"
)

// nothingSaved is the state before the first commit.
type nothingSaved struct{}

func (nothingSaved) Position(string) (change.Position, bool, error) {
	return change.Position{}, false, nil
}

func (nothingSaved) Ended(string, string, string) (bool, error) { return false, nil }

func (nothingSaved) Lookup(string, change.Key) (change.Entry, bool, error) {
	return change.Entry{}, false, nil
}

// listenerOfALog is a listener whose sink's log holds the records that the state does not know.
func listenerOfALog(t *testing.T, records ...*change.Record) *Listener {
	t.Helper()
	l := New(0, Sink{Name: "s"}, &Config{ClusterUID: clusterUID, Streams: []change.Stream{pods()}, Observer: NopObserver()})
	l.Seat = line.New([]line.Member{l.Member()}, line.Options{ClusterUID: clusterUID}).Seat(0)
	l.reader = redo.Reader{
		Ledger: redo.Ledger{State: nothingSaved{}}, ClusterUID: clusterUID,
		Foreign: func(change.ID) (bool, error) { return false, nil },
	}
	reading := l.reader.Read(l.Recovery.Streams(), nil)
	for _, rec := range records {
		reading.Take(rec.ID(clusterUID).String())
	}
	if err := reading.Err(); err != nil {
		t.Fatal(err)
	}
	l.Recovery.Log.Know(reading)
	return l
}

// A delete of what the log alone had is written, and the write fails all the same. A mark after it carries it with the
// object: else the object would be there again after a crash, and its delete told twice.
func TestI3WhatAFailedWriteHasLeftIsCarried(t *testing.T) {
	made, gone := update(pods(), "a", 5), update(pods(), "a", 5)
	gone.Op = change.Deleted
	l := listenerOfALog(t, made)
	l.retried = map[string]struct{}{gone.ID(clusterUID).String(): {}}
	if rest, err := l.skipRetried([]*change.Record{gone}); err != nil || len(rest) != 0 {
		t.Fatalf("%d records are written again, %v", len(rest), err)
	}
	want := []string{made.ID(clusterUID).String(), gone.ID(clusterUID).String()}
	if ids, ok := l.Recovery.Log.Remaining(); !ok || !slices.Equal(slices.Compact(ids), want) {
		t.Errorf("a mark carries %q, %t; want %q", ids, ok, want)
	}
}
