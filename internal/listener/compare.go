package listener

import "github.com/kubecdc/kubecdc/internal/checkpoint"

// Verdict is what a comparison does about one listed object.
type Verdict byte

const (
	ForWatch  Verdict = iota // nothing: the watch will bring it
	Unchanged                // nothing, unless the snapshot is full: the sink was told exactly this
	Outdated                 // nothing: the sink was told something newer
	Changed                  // tell the sink of it
	Another                  // the same, after the delete of another object of the name
)

// Listed is an object that a list has.
type Listed struct {
	UID      string
	At       checkpoint.Point // of the object's state
	List     checkpoint.Point // at which the list was to be read: it is no older
	Position checkpoint.Point // of the sink: the watch has told it everything up to here
}

// Judge compares a listed object with what the sink was told last of its name. A resourceVersion orders all states of a
// resource, so the versions of state and list, the position and the row suffice: unlike with databases (DBLog), no
// watermark is needed.
//
// If an object is listed at the version at which its delete was told, it had only left the selection, and no watch
// tells of it again. If the list should contain what was told, and has something older, the row is of a history that is
// over.
func Judge(o *Listed, last checkpoint.Row) Verdict {
	switch {
	case last.Gone && last.UID == o.UID && last.At == o.At:
		return Changed
	case last.Exists() && last.At == o.At && last.UID == o.UID: // the position of what came last is one below it
		return Unchanged
	case o.At.After(o.Position):
		return ForWatch
	case last.At.After(o.List):
		return Outdated
	case last.Exists() && last.UID != o.UID:
		return Another
	}
	return Changed
}

// MissingVerdict is what a comparison does about an object that a list did not have.
type MissingVerdict byte

const (
	Open   MissingVerdict = iota // wait: the watch has not passed the list
	Exists                       // nothing: it was told since the list, or its delete was told
	Ended                        // tell the sink that it is gone
)

// JudgeMissing judges a row that a list did not have whose pages are of the versions from oldest to newest. The
// position is up to where the watch has told the sink everything.
func JudgeMissing(oldest, newest, position checkpoint.Point, last checkpoint.Row) MissingVerdict {
	switch {
	case !last.Exists(), last.At.After(oldest):
		return Exists
	case newest.After(position):
		return Open
	}
	return Ended
}

// AsOf is the version of a delete that is told because a list lacks the row's object. It is the row's own, since an
// object that has left the selection may return to it unchanged; one of another history cannot.
func AsOf(list checkpoint.Point, last checkpoint.Row) checkpoint.Point {
	if last.At.History == list.History {
		return last.At
	}
	return list
}

// Deleted is the item of the delete of the row's object, at asOf.
func Deleted(of checkpoint.Object, scope checkpoint.Scope, last checkpoint.Row, asOf checkpoint.Point) checkpoint.Item {
	return checkpoint.Item{Kind: checkpoint.Told, Resource: of.Resource, Scope: scope, At: asOf, Key: of.Key, UID: last.UID, Gone: true}
}
