package listener

import "github.com/kubecdc/kubecdc/internal/checkpoint"

// Verdict is what a comparison does about one listed object.
type Verdict byte

const (
	ForWatch  Verdict = iota // to the watch, which will bring it
	Unchanged                // the sink was told of exactly this
	Outdated                 // the sink was told something newer
	Changed                  // the sink is to be told
	Another                  // and before that of the end of another object of the name
)

// Listed is an object that a list has.
type Listed struct {
	UID      string
	At       checkpoint.Point // of the object's state
	List     checkpoint.Point // the list is no older
	Position checkpoint.Point // up to where the watch has told the sink everything
}

// Judge compares a listed object with what the sink was told last of its name. A resourceVersion orders all states of
// a resource, so the version of the state, that of the list, the position of the watch and what was told last say
// everything: no watermark is needed, as it is for databases (DBLog).
//
// An unchanged object that is listed and was told to be gone has left another selection. No watch tells of it again.
// Where the list should have what was told, and has something older, that is of a history which is over.
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

// MissingVerdict is what is known of an object that a list did not have.
type MissingVerdict byte

const (
	Open   MissingVerdict = iota // the watch has not passed the list
	Exists                       // or its end was told: nothing is to be told
	Ended                        // the sink is to be told that it is gone
)

// JudgeMissing judges a row that the list of the version did not have.
func JudgeMissing(list, position checkpoint.Point, last checkpoint.Row) MissingVerdict {
	switch {
	case !last.Exists(), last.At.After(list):
		return Exists
	case list.After(position):
		return Open
	}
	return Ended
}

// AsOf is the version of the delete of a row's object that the list of the version does not have. It is the row's own:
// an object that has left the selection may return to it unchanged. One of another history cannot.
func AsOf(list checkpoint.Point, last checkpoint.Row) checkpoint.Point {
	if last.At.History == list.History {
		return last.At
	}
	return list
}

// Deleted is the delete of the row's object, known as of the point.
func Deleted(of checkpoint.Object, scope checkpoint.Scope, last checkpoint.Row, asOf checkpoint.Point) checkpoint.Item {
	return checkpoint.Item{Kind: checkpoint.Told, Resource: of.Resource, Scope: scope, At: asOf, Key: of.Key, UID: last.UID, Gone: true}
}
