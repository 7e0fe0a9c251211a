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
	asked map[string]struct{} // uids that a reconcile under way was given
	// uids under whose keys something is in line, so that no reconcile needs to be given them
	known  map[string]struct{}
	inLine map[string]struct{} // uids whose deletes are in line
	ended  map[string]struct{} // uids of which the sink was told
	frame  *change.Snapshot    // of the reconcile whose records the sink takes
	over   bool                // the tail is of use for what ended only
}

func newSinkOnly() sinkOnly {
	return sinkOnly{asked: map[string]struct{}{}, known: map[string]struct{}{}, inLine: map[string]struct{}{}, ended: map[string]struct{}{}}
}

// told notes that the sink takes a delete, whether it is of a sink-only object.
func (g *sinkOnly) told(id *change.ID, sinkOnly bool) {
	delete(g.inLine, id.UID)
	if delete(g.ended, id.UID); sinkOnly {
		g.ended[id.UID] = struct{}{}
	}
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
