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
func (g *sinkOnly) answer(end *change.Record) {
	for uid := range g.asked {
		if endsReconcile(end) {
			g.answered[uid] = end.Seq
		}
	}
	clear(g.asked)
}

// isAnswered says whether the reconcile that the record ends was asked for the object, or one before that.
func (g *sinkOnly) isAnswered(uid string, end *change.Record) bool {
	at, answered := g.answered[uid]
	return answered && at <= end.Seq
}

// told notes that the sink takes a delete, whether it is of a sink-only object. Another one of the same object may be
// in line after it: what went in line before the log was read was not looked at, and what is on disk has no Seq.
func (g *sinkOnly) told(id *change.ID, seq uint64, sinkOnly bool) {
	g.leaves(id.UID, seq)
	if delete(g.ended, id.UID); sinkOnly {
		g.ended[id.UID] = struct{}{}
	}
}

// leaves notes that the delete with the Seq is in line no more.
func (g *sinkOnly) leaves(uid string, seq uint64) {
	if g.inLine[uid] == seq {
		delete(g.inLine, uid)
	}
}

// passed notes that the sink was given all deletes before the frontier, also those that went to disk.
func (g *sinkOnly) passed(frontier uint64) {
	maps.DeleteFunc(g.inLine, func(_ string, seq uint64) bool { return seq < frontier })
}

// expects says whether the delete of a sink-only object that the sink was told of may come again: behind is that
// records are on disk.
func (g *sinkOnly) expects(behind bool) bool {
	maps.DeleteFunc(g.ended, func(uid string, _ struct{}) bool {
		_, asked := g.asked[uid]
		_, inLine := g.inLine[uid]
		return !asked && !inLine && !behind
	})
	return len(g.ended) > 0
}

// isInLine says whether something is in line of the sink-only object, or of what has taken its place.
func (g *sinkOnly) isInLine(uid string) bool {
	_, inLine := g.inLine[uid]
	_, known := g.known[uid]
	return inLine || known
}
