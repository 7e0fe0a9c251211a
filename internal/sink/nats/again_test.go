package nats

import (
	"slices"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// told is a record of an object whose version does not change: it is told for another reason.
func told(name string, op change.Op) sink.Message {
	id := change.ID{
		Cluster: "prod", Resource: "pods", Key: change.Key{Namespace: "shop", Name: name},
		UID: "u", ResourceVersion: "5", Op: op,
	}
	return sink.Message{
		ID: id.String(), Op: op.String(), ResourceVersion: "5", Destination: "k8s.pods", Value: []byte("{}"),
	}
}

// TestI1WhatIsToldAgainIsStoredAgain, on a stream that others write to, too: an object that is left out, selected again
// and left out again has the ids of before (I8), which the server knows. Its deletes and what it is are stored each
// time, across restarts and within a batch.
func TestI1WhatIsToldAgainIsStoredAgain(t *testing.T) {
	s, options := sharing(t)
	var want []string
	mark := sink.Mark("")
	is, isNot, other := told("web", change.Replaced), told("web", change.Deleted), told("db", change.Added)
	for _, run := range [][][]sink.Message{
		{{is, other}},
		{{isNot}},
		{{is}, {isNot}, {is, other}},
		{{isNot, is, isNot, is}},
		{{is, other}, {is, other}, {isNot}},
	} {
		opened := newSink(t, options)
		wantIDs(t, openAt(t, opened, mark), nil)
		for _, batch := range run {
			mark = write(t, opened, batch)
			want = append(want, idsOf(batch)...)
		}
	}
	got := s.ids()
	if len(got) != len(want) {
		t.Errorf("%d are stored, want %d", len(got), len(want))
	}
	ofWeb := func(ids []string) []string {
		return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == other.ID })
	}
	wantIDs(t, ofWeb(got), ofWeb(want))
}

// TestI3AnEndComesAfterWhatIsToldAgain, on a stream that others write to, too: the server knows the ids from before,
// and each object goes out a second time.
func TestI3AnEndComesAfterWhatIsToldAgain(t *testing.T) {
	s, options := sharing(t)
	opened := openSink(t, options)
	batch := []sink.Message{told("new", change.Added)}
	for _, name := range []string{"a", "b", "c", "d"} {
		batch = append(batch, told(name, change.Replaced))
	}
	write(t, opened, batch[1:])
	end := told("", change.SnapshotEnd)
	end.Reason = string(change.Left)
	write(t, opened, append(batch, end))
	if got := s.ids(); len(got) != 10 || got[9] != end.ID {
		t.Errorf("what is stored is %q, want the end last", got)
	}
}

// TestI1WhatWasToldAgainIsFoundAfterACrash, and is not stored once more.
func TestI1WhatWasToldAgainIsFoundAfterACrash(t *testing.T) {
	_, options := sharing(t)
	opened := openSink(t, options)
	is, isNot := told("web", change.Replaced), told("web", change.Deleted)
	mark := write(t, opened, []sink.Message{is, isNot})
	write(t, opened, []sink.Message{is, isNot})
	wantIDs(t, openAt(t, newSink(t, options), mark), []string{is.ID, isNot.ID})
}

// TestI3LastWordsOnASharedStream of a killed exporter, which come when the next one has opened its log, are those that
// this one sends first: they are stored once, though the server has them from before this one's other messages.
func TestI3LastWordsOnASharedStream(t *testing.T) {
	s, options := sharing(t)
	maker := newMaker()
	first := idsOf(maker.Batch(1))
	late, other := maker.Batch(20), maker.Batch(5)
	mark, release := dying(t, s, options, late, 0)
	next := newSink(t, options)
	wantIDs(t, openAt(t, next, mark), nil)
	release()
	s.awaitStored(2)
	write(t, next, slices.Concat(other, late))
	wantIDs(t, s.ids(), slices.Concat(first, idsOf(late[:1]), idsOf(other), idsOf(late[1:])))
}

// TestI1WithoutAMarkWhatIsThereIsBelieved: a crash before the first mark leaves messages of which nothing is known.
func TestI1WithoutAMarkWhatIsThereIsBelieved(t *testing.T) {
	s, options := sharing(t)
	batch := newMaker().Batch(20)
	write(t, openSink(t, options), batch[:10])
	write(t, openSink(t, options), batch)
	wantIDs(t, s.ids(), idsOf(batch))
}
