package redo

import "github.com/kubecdc/kubecdc/internal/change"

// State is what of the saved state is asked for.
type State interface {
	// Position returns the stream's, false where there is none.
	Position(stream string) (change.Position, bool, error)
	// Lookup returns the inventory's entry of one object, false where the sinks have no such object.
	Lookup(stream string, key change.Key) (change.Entry, bool, error)
	// Ended says whether the delete of the object at the version was delivered, of a stream that is being compared.
	Ended(stream, version, uid string) (bool, error)
}

// Ledger tells what the saved state says of a record that a sink's log holds.
type Ledger struct {
	State State
	// ReplayBase, where there is one, are the positions by stream before the first record was spooled that the log may
	// hold: what is saved since comes from disk. It is set once, before the log is read.
	ReplayBase map[string]change.Position
	// Replays, where there is a ReplayBase, says whether anything is on disk that was saved since. A position may stand
	// still all the same: several records share its version, and what a full snapshot finds carries older ones.
	Replays func() (bool, error)
}

// position is the one that the id is compared with, and whether it is older than the inventory. There is none where
// that one is of another epoch and the id of the present one: such a record comes from disk, whatever its version.
func (l Ledger) position(id change.ID, stream *change.Stream) (position change.Position, old bool, err error) {
	now, _, err := l.State.Position(stream.String())
	// While a reconcile is under way the inventory moves and the position does not.
	base, found := l.ReplayBase[stream.String()]
	if !found || base == now && !base.UnderWay() {
		return now, false, err
	}
	here := change.Record{Stream: stream, Epoch: now.Epoch}
	if base.Epoch != now.Epoch && id.Cluster == here.ID("").Cluster {
		return change.Position{}, true, err
	}
	return base, true, err
}

// Settled says whether the record is part of the saved state, so that it will not come again. A mark may lie further
// back than the positions: it waits for the slowest stream.
func (l Ledger) Settled(id change.ID, stream *change.Stream) (bool, error) {
	if !id.Op.OfObject() && id.Key.Name == "" {
		return true, nil // another reconcile has another id
	}
	position, old, err := l.position(id, stream)
	if err != nil || position == (change.Position{}) {
		return false, err
	}
	order := change.CompareVersions(id.ResourceVersion, position.ResourceVersion)
	switch {
	case id.Op == change.Sync && order <= 0 && !old && !position.UnderWay():
		return true, nil // another snapshot has another id
	case id.Op == change.Sync:
		return l.isKnown(id, stream)
	case order > 0:
		return false, nil
	case id.Op == change.Gap && !position.UnderWay(): // in the place of a rejected record
		if order == 0 || old {
			return order < 0, nil
		}
		behind, err := l.isBehind(id, stream)
		return !behind, err
	case order < 0 && (id.Op == change.Added || id.Op == change.Updated) && !position.Compared():
		return true, nil // else it may lie in the gap that the position has passed over
	case old:
		return false, nil // the inventory is that of later records
	case order == 0 && id.Op == change.Deleted && position.Compared():
		return l.State.Ended(stream.String(), id.ResourceVersion, id.UID)
	}
	// At the position other records may share the version, and what a reconcile found carries older ones.
	return l.isKnown(id, stream)
}

// isKnown says whether the inventory is that after the record, and nothing of that comes from disk. A full snapshot
// may have given what the state has not come to, to a sink that was absent when it was told, and the state is one from
// before (I11). Then it comes again, though not as a sync.
func (l Ledger) isKnown(id change.ID, stream *change.Stream) (bool, error) {
	known, err := l.knows(id, stream)
	if _, based := l.ReplayBase[stream.String()]; err != nil || !known || !based {
		return known, err
	}
	replays, err := l.Replays() // after the look at the inventory, which may have moved on by now
	return !replays, err
}

// isBehind says whether the inventory has something older of the object than the record that a note stands for. Where
// the position has passed that, no watch told of it: a full snapshot found it, and it is not saved. Of an object that
// the inventory does not have, or has as the note says, nothing can be told: its delete may have come later.
func (l Ledger) isBehind(note change.ID, stream *change.Stream) (bool, error) {
	entry, found, err := l.State.Lookup(stream.String(), note.Key)
	return found && change.CompareVersions(entry.ResourceVersion, note.ResourceVersion) < 0, err
}

// knows says whether the inventory is that after the record. Where it has something newer of an object that the log
// says is deleted, it is not: what came after the delete says so in the log, too, and else the state is older (I11).
func (l Ledger) knows(id change.ID, stream *change.Stream) (bool, error) {
	entry, found, err := l.State.Lookup(stream.String(), id.Key)
	if id.Op == change.Deleted {
		return !found || entry.UID != id.UID, err
	}
	return found && entry.UID == id.UID && change.CompareVersions(entry.ResourceVersion, id.ResourceVersion) >= 0, err
}

// isCorrection says of a record that is not settled whether no watch brings it again: it carries a version that the
// position has passed, and the inventory is not after it. So does its note. What was found before the positions moved
// on may come from disk, or again from a reconcile that is due. But both come after other records on disk, which pass
// the tail of the log.
func (l Ledger) isCorrection(id change.ID, stream *change.Stream) (bool, error) {
	position, _, err := l.position(id, stream)
	ofObject := id.Op.OfObject() || id.Op == change.Gap // its note
	if err != nil || position == (change.Position{}) || !ofObject || position.UnderWay() ||
		change.CompareVersions(id.ResourceVersion, position.ResourceVersion) >= 0 {
		return false, err
	}
	known, err := l.knows(id, stream)
	return !known, err
}
