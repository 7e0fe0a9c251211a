package redo

import (
	"fmt"
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
)

// What a sink's log holds after a mark may be long: others may write there, too. So it is folded while it is read, and
// what is kept of it is what the saved state does not know (I6).

// Reader reads ids as those of a cluster, and compares them with the saved state.
type Reader struct {
	Ledger
	ClusterUID string                        // of namespace kube-system
	Foreign    func(change.ID) (bool, error) // says whether the id is of a cluster that was never behind the name
}

// Ours reads an id, and says whether it is one of our cluster.
func (r *Reader) Ours(text string) (id change.ID, ours bool, err error) {
	if id, err = change.ParseID(text); err != nil {
		return id, false, nil
	}
	theirs, err := r.Foreign(id)
	if err != nil {
		return id, false, fmt.Errorf("read the clusters that were behind the name: %w", err)
	}
	return id, !theirs, nil
}

// OursIn reads an id, and finds which of the streams its record came from; nil is none of them.
func (r *Reader) OursIn(text string, streams []*change.Stream) (change.ID, *change.Stream, error) {
	id, ours, err := r.Ours(text)
	if err != nil || !ours {
		return id, nil, err
	}
	return id, StreamOf(streams, id), nil
}

// Reading is one reading of a log.
type Reading struct {
	reader  *Reader
	streams []*change.Stream
	spooled *spooledIDs
	tails   tails
	frames  frames
	found   foundIDs
	err     error // the first; nothing counts then
}

// Read begins a reading. The spooled are the first records on disk, which are saved and come again all the same.
func (r *Reader) Read(streams []*change.Stream, spooled []*change.Record) *Reading {
	return &Reading{reader: r, streams: streams, spooled: newSpooledIDs(spooled, r.ClusterUID), tails: tails{}, frames: frames{}}
}

// Err is what kept ids from being read.
func (r *Reading) Err() error { return r.err }

// Take takes the next id as text. One that is no record of one of the streams, or that is saved, is left out.
func (r *Reading) Take(text string) {
	if r.err != nil {
		return
	}
	r.spooled.found(text)
	id, stream, err := r.reader.OursIn(text, r.streams)
	if err == nil && stream != nil {
		err = r.fold(text, id, stream)
	}
	if r.err = err; err == nil && stream != nil {
		r.frames.note(text, id, stream)
	}
}

func (r *Reading) fold(text string, id change.ID, stream *change.Stream) (err error) {
	_, settled := r.spooled.ids[id]
	if !settled {
		settled, err = r.reader.Settled(id, stream)
	}
	correction := false
	if err == nil && !settled {
		correction, err = r.reader.isCorrection(id, stream)
	}
	switch {
	case err != nil:
		return fmt.Errorf("find %s in the saved state: %w", id, err)
	case settled && !r.tails.endsHere(id, stream):
		return r.settle(text, id, stream)
	}
	t := r.tails.of(stream.String())
	unseen, err := r.isUnseen(t, id, stream)
	if err != nil {
		return fmt.Errorf("find %s in the saved state: %w", id, err)
	}
	r.found.add(text, &id)
	if t.add(id); unseen {
		t.unseen[id.UID] = struct{}{}
	}
	if isInOrder(id) {
		t.close(id)
	}
	if delete(t.corrections, id.Key); correction { // what the log has after a correction comes again, or is saved
		t.corrections[id.Key] = struct{}{}
	}
	return nil
}

// isInOrder says whether the id is that of a delete with a version of its own history. What was gone when another
// history was found was told to be gone in that one, with a version of the one before.
func isInOrder(id change.ID) bool {
	isFirst := change.ClusterOf(id.Cluster) == id.Cluster
	return id.Op == change.Deleted && isFirst
}

// isUnseen says whether the id is that of a delete which no watch saw, and which is not saved. It has the version of
// the object before it, as the tail tells it, or what is on disk. Or the inventory has something newer, which is that
// of records that come from disk; it may have come to another object of the name by then. And no watch tells of a
// delete that is as old as the position.
func (r *Reading) isUnseen(t *tail, id change.ID, stream *change.Stream) (bool, error) {
	if id.Op != change.Deleted {
		return false, nil
	}
	isAhead := func(version, uid string) bool {
		return uid == id.UID && change.CompareVersions(version, id.ResourceVersion) >= 0
	}
	if known := t.latest[id.Key]; isAhead(known.version, known.uid) {
		return true, nil
	}
	if before, found := r.spooled.stateOf(id); found { // a mark that carries the delete needs it, too
		r.found.add(before.String(), &before)
		return true, nil
	}
	position, _, err := r.reader.position(id, stream)
	if err != nil || change.CompareVersions(id.ResourceVersion, position.ResourceVersion) <= 0 {
		return err == nil, err
	}
	entry, found, err := r.reader.State.Lookup(stream.String(), id.Key)
	return found && isAhead(entry.ResourceVersion, entry.UID), err
}

// settle takes the id of a record that does not come again. A full snapshot is read beside the watch, and may have
// given what the watch has told and nobody has saved: that proves nothing.
func (r *Reading) settle(text string, id change.ID, stream *change.Stream) error {
	if id.Op == change.Sync && r.tails[stream.String()] != nil {
		known, err := r.reader.knows(id, stream)
		if err != nil {
			return fmt.Errorf("find %s in the saved state: %w", id, err)
		}
		if !known {
			return nil
		}
	}
	ends := id.Op == change.Deleted && r.found.has(id.UID) // a mark that carries the object carries its delete
	if r.tails.settle(id, stream) || ends {
		r.found.add(text, &id)
	}
	return nil
}

// spooledIDs find out which of the first records on disk the log holds.
type spooledIDs struct {
	records []*change.Record
	cluster string
	ids     map[change.ID]struct{}
	held    map[string]bool // by id, and by those of the notes: whether the log holds it
}

func newSpooledIDs(records []*change.Record, clusterUID string) *spooledIDs {
	s := &spooledIDs{records: records, cluster: clusterUID}
	if len(records) == 0 {
		return s
	}
	s.ids, s.held = map[change.ID]struct{}{}, map[string]bool{}
	for _, rec := range records {
		id := rec.ID(clusterUID)
		s.ids[id] = struct{}{}
		notes := change.NotesOf(id)
		s.held[id.String()], s.held[notes[0].String()], s.held[notes[1].String()] = false, false, false
	}
	return s
}

// found notes that the log holds the id.
func (s *spooledIDs) found(text string) {
	if _, asked := s.held[text]; asked {
		s.held[text] = true
	}
}

// stateOf finds the state with the uid and the version of the delete among the records.
func (s *spooledIDs) stateOf(deleted change.ID) (id change.ID, found bool) {
	id = deleted
	for _, id.Op = range []change.Op{change.Added, change.Updated, change.Replaced} {
		if _, found := s.ids[id]; found {
			return id, true
		}
	}
	return id, false
}

// again are the ids of those records on disk that the log holds, or whose note it holds in their place, but for what
// takeNote leaves out. A log may be compacted: what comes before a record of the same object that it holds was
// delivered, too.
func (s *spooledIDs) again() map[change.ID]struct{} {
	again := map[change.ID]struct{}{}
	type object struct {
		stream string
		key    change.Key
	}
	later := map[object]bool{}
	for _, rec := range slices.Backward(s.records) {
		id, of := rec.ID(s.cluster), object{rec.Stream.String(), rec.Key}
		notes := change.NotesOf(id)
		noted := s.held[notes[0].String()] || s.held[notes[1].String()]
		if s.held[id.String()] || noted && id.Key.Name != "" && !rec.FinalStateUnknown || later[of] && rec.Op.OfObject() {
			again[id], later[of] = struct{}{}, true
		}
	}
	return again
}

// Gone says whether the saved state is after the record, and does not have its object. What lies after the position
// comes again. What a comparison that is under way has not come to may be gone, or not: the list of the snapshot that
// the sink is owed tells.
func (r *Reader) Gone(id change.ID, stream string) (bool, error) {
	position, found, err := r.State.Position(stream)
	here := change.Record{Stream: &change.Stream{}, Epoch: position.Epoch}
	if err != nil || !found || id.Cluster == here.ID(r.ClusterUID).Cluster && change.CompareVersions(id.ResourceVersion, position.ResourceVersion) > 0 {
		return false, err
	}
	entry, found, err := r.State.Lookup(stream, id.Key)
	if err != nil {
		err = fmt.Errorf("find %s in the saved state: %w", id, err)
	}
	return !found || entry.UID != id.UID, err
}
