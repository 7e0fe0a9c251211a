package redo

import (
	"maps"

	"github.com/kubecdc/kubecdc/internal/change"
)

// sinkOnly is what becomes of the objects that a tail leaves in existence. A reconcile asks for them and tells which
// are gone. One that ran before the sink was open did not know them: the listener itself tells then, where the records
// prove it, as the reconcile would have done (I4). A record of another object under the key of a sink-only object
// proves it, and so does the end of a reconcile that neither told of the sink-only object nor left it in the state.
// Both may happen for the same sink-only object, and the sink is told once (I3): so a tail is not forgotten while the
// delete of a sink-only object that the sink was told of may still come.
type sinkOnly struct {
	asked    map[string]struct{} // uids that a reconcile under way was given
	answered map[string]uint64   // by uid that one was given which has ended, and has told what it found: its end's Seq
	// uids under whose keys something is in line, so that no reconcile needs to be given them
	known  map[string]struct{}
	inLine map[string]uint64   // by uid whose delete is in line: the Seq of the newest
	ended  map[string]struct{} // uids of which the sink was told
	frame  *change.Snapshot    // of the reconcile whose records the sink takes
	over   bool                // the tail is of use for what ended only
}

func newSinkOnly() sinkOnly {
	return sinkOnly{asked: map[string]struct{}{}, answered: map[string]uint64{}, known: map[string]struct{}{}, inLine: map[string]uint64{}, ended: map[string]struct{}{}}
}

// answer notes that the end of a snapshot goes in line.
func (s *sinkOnly) answer(end *change.Record) {
	for uid := range s.asked {
		if endsReconcile(end) {
			s.answered[uid] = end.Seq
		}
	}
	clear(s.asked)
}

// isAnswered says whether the reconcile that the record ends was asked for the object, or one before that.
func (s *sinkOnly) isAnswered(uid string, end *change.Record) bool {
	at, answered := s.answered[uid]
	return answered && at <= end.Seq
}

// told notes that the sink takes a delete, whether it is of a sink-only object. Another one of the same object may be
// in line after it: what went in line before the log was read was not looked at, and what is on disk has no Seq.
func (s *sinkOnly) told(id *change.ID, seq uint64, sinkOnly bool) {
	s.leaves(id.UID, seq)
	if delete(s.ended, id.UID); sinkOnly {
		s.ended[id.UID] = struct{}{}
	}
}

// leaves notes that the delete with the Seq is in line no more.
func (s *sinkOnly) leaves(uid string, seq uint64) {
	if s.inLine[uid] == seq {
		delete(s.inLine, uid)
	}
}

// passed notes that the sink was given all deletes before the frontier, also those that went to disk.
func (s *sinkOnly) passed(frontier uint64) {
	maps.DeleteFunc(s.inLine, func(_ string, seq uint64) bool { return seq < frontier })
}

// expects says whether the delete of a sink-only object that the sink was told of may come again: behind is that
// records are on disk.
func (s *sinkOnly) expects(behind bool) bool {
	maps.DeleteFunc(s.ended, func(uid string, _ struct{}) bool {
		_, asked := s.asked[uid]
		_, inLine := s.inLine[uid]
		return !asked && !inLine && !behind
	})
	return len(s.ended) > 0
}

// isInLine says whether something is in line of the sink-only object, or of what has taken its place.
func (s *sinkOnly) isInLine(uid string) bool {
	_, inLine := s.inLine[uid]
	_, known := s.known[uid]
	return inLine || known
}
