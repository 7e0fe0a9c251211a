package checkpoint

import (
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
)

// ItemOf is what the id of a message says. is is false for what says nothing of what its sink has: an actor.
//
// A gap that names an object is the note of one that the sink rejected: the sink was told as much as it will ever be.
// Whether that was a delete the note does not say. So the object counts as one that exists, and the next comparison
// tells its end.
func ItemOf(id *change.ID) (item Item, is bool) {
	at := Point{HistoryOf(id.Cluster), id.ResourceVersion}
	item = Item{Resource: id.Resource, Scope: Others, At: at, Key: id.Key, UID: id.UID}
	if id.Op == change.Gap && id.Key.Name != "" || id.Op.OfObject() {
		item.Kind, item.Gone = Told, id.Op == change.Deleted
		if id.Op == change.Sync {
			item.Kind, item.Comparison = Sync, comparisonOf(id, Others)
		}
		return item, true
	}
	if id.Key.Namespace != "" {
		item.Scope = Scope(id.Key.Namespace)
	}
	if item.Key, item.UID = (change.Key{}), ""; strings.HasSuffix(id.Snapshot, PartSuffix) {
		return Item{}, false
	}
	switch id.Op {
	case change.Gap:
		item.Kind = Gap
	case change.SnapshotBegin:
		item.Kind = Begin
	case change.SnapshotEnd:
		item.Kind = End
	default:
		return Item{}, false
	}
	item.Comparison = comparisonOf(id, item.Scope)
	return item, true
}

func comparisonOf(id *change.ID, scope Scope) Comparison {
	return Comparison{ID: id.Snapshot, Full: strings.HasSuffix(id.Snapshot, FullSuffix), Namespace: string(scope)}
}
