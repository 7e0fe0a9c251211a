package pipeline

import (
	"fmt"
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// What a sink's log holds behind a mark may be long: others may write there, too. So it is folded while it is read, and
// what is kept of it is what the saved state does not know (I6).

// logReading is one reading of a log for a deliveredSet.
type logReading struct {
	set     *deliveredSet
	streams []*change.Stream
	spooled *spooledIDs
	tails   tails
	found   foundIDs
	err     error // the first; nothing counts then
}

// reading begins one. The spooled are the first records on disk, which are saved and come again all the same.
func (d *deliveredSet) reading(spooled []*change.Record, clusterUID string) *logReading {
	return &logReading{set: d, streams: d.present(), spooled: newSpooledIDs(spooled, clusterUID), tails: tails{}}
}

// take takes the next id as text. One that is no record of one of the streams, or that is saved, is left out.
func (r *logReading) take(text string) {
	if r.err != nil {
		return
	}
	r.spooled.found(text)
	id, stream, err := r.set.oursIn(text, r.streams)
	if err == nil && stream != nil {
		err = r.fold(text, id, stream)
	}
	r.err = err
}

func (r *logReading) fold(text string, id change.ID, stream *change.Stream) (err error) {
	_, settled := r.spooled.ids[id]
	if !settled {
		settled, err = r.set.ledger.settled(id, stream)
	}
	correction := false
	if err == nil && !settled {
		correction, err = r.set.ledger.isCorrection(id, stream)
	}
	switch {
	case err != nil:
		return fmt.Errorf("find %s in the saved state: %w", id, err)
	case settled:
		if r.tails.settle(id, stream) {
			r.found.add(text, &id)
		}
		return nil
	}
	r.found.add(text, &id)
	t := r.tails.of(stream.String())
	t.add(id)
	if delete(t.corrections, id.Key); correction { // what the log has behind a correction comes again, or is saved
		t.corrections[id.Key] = struct{}{}
	}
	return nil
}

// oursIn reads an id, and finds the stream that its record came from; nil is none of ours.
func (d *deliveredSet) oursIn(text string, streams []*change.Stream) (change.ID, *change.Stream, error) {
	id, ours, err := d.ours(text)
	if err != nil || !ours {
		return id, nil, err
	}
	return id, streamOf(streams, id), nil
}

// ours reads an id, and says whether it is one of our cluster.
func (d *deliveredSet) ours(text string) (id change.ID, ours bool, err error) {
	if id, err = change.ParseID(text); err != nil {
		return id, false, nil
	}
	theirs, err := d.foreign(id)
	if err != nil {
		return id, false, fmt.Errorf("read the clusters that were behind the name: %w", err)
	}
	return id, !theirs, nil
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
		notes := notesOf(id)
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
		notes := notesOf(id)
		noted := s.held[notes[0].String()] || s.held[notes[1].String()]
		if s.held[id.String()] || noted && id.Key.Name != "" && !rec.FinalStateUnknown || later[of] && rec.Op.OfObject() {
			again[id], later[of] = struct{}{}, true
		}
	}
	return again
}

// behindMark is what the listener keeps of the ids that its sink finds behind a mark.
type behindMark struct {
	count   int
	log     *logReading     // of the first opening, and where the log lost something
	held    *heldReading    // of a sink that comes back; nil of others
	unread  *unreadReading  // of streams that are not configured; nil where there are none
	letters func(id string) // finds those that are claimed
	settle  func() error    // ends that

	// Where the batch that failed is looked for:
	set     *deliveredSet
	retried map[string]struct{}
	failed  error
}

// take takes the next id.
func (b *behindMark) take(id string) {
	b.count++
	b.letters(id)
	if b.log == nil {
		b.takeRetried(id)
		return
	}
	b.log.take(id)
	if b.held != nil {
		b.held.take(id)
	}
	if b.unread != nil {
		b.unread.take(id)
	}
}

// takeRetried keeps an id that may be one of the batch.
func (b *behindMark) takeRetried(text string) {
	_, ours, err := b.set.ours(text)
	if b.failed == nil {
		b.failed = err
	}
	if ours {
		b.retried[text] = struct{}{}
	}
}

// err is what kept ids from being read.
func (b *behindMark) err() error {
	if b.failed != nil {
		return b.failed
	}
	if b.log != nil && b.log.err != nil {
		return b.log.err
	}
	if b.held != nil && b.held.err != nil {
		return b.held.err
	}
	if b.unread != nil {
		return b.unread.err
	}
	return nil
}

// heldReading is what a log holds of a sink that comes back: each object as the last id says.
type heldReading struct {
	set     *deliveredSet
	sink    string
	streams []*change.Stream
	at      map[heldObject]int
	all     []checkpoint.Held
	err     error
}

type heldObject struct {
	stream string
	key    change.Key
	uid    string
}

func newHeldReading(l *listener, streams []*change.Stream) *heldReading {
	return &heldReading{set: &l.delivered, sink: l.Name, streams: streams, at: map[heldObject]int{}}
}

func (r *heldReading) take(text string) {
	if r.err != nil {
		return
	}
	id, stream, err := r.set.oursIn(text, r.streams)
	if r.err = err; err != nil || stream == nil || !id.Op.OfObject() {
		return
	}
	r.add(&id, stream)
}

// add notes the object as the id says.
func (r *heldReading) add(id *change.ID, stream *change.Stream) {
	h := checkpoint.Held{
		Share:  checkpoint.Share{Sink: r.sink, Stream: stream.String()},
		Entry:  change.Entry{Key: id.Key, UID: id.UID, ResourceVersion: id.ResourceVersion},
		Exists: id.Op != change.Deleted, Ahead: id.Cluster,
	}
	of := heldObject{h.Stream, id.Key, id.UID}
	if at, known := r.at[of]; known {
		r.all[at] = h
		return
	}
	r.at[of] = len(r.all)
	r.all = append(r.all, h)
}
