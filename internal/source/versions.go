package source

import (
	"errors"
	"fmt"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// maxRestarts is how often one reconcile starts over when its pages expire, before the Reflector's backoff has its
// turn.
const maxRestarts = 5

// UnorderedError says that the resourceVersions of a stream cannot be ordered (KEP-5504).
type UnorderedError struct {
	Stream change.Stream
	Why    string
}

func (e *UnorderedError) Error() string {
	return fmt.Sprintf("read %s: %s: nobody can tell what is new (KEP-5504), so the stream is refused: take the resource out of the configuration, or have its server fixed, and start again",
		e.Stream, e.Why)
}

// inexactError says that a server answered a list at exactly one version with another.
type inexactError struct{ asked, got string }

func (e *inexactError) Error() string {
	return fmt.Sprintf("the server listed resourceVersion %.40q where exactly %.40q was asked for", e.got, e.asked)
}

// versions judges the resourceVersions that a server gives a stream. It is pure.
type versions struct {
	stream  *change.Stream
	inexact int // so many lists in a row were not of the version that was asked for
}

// unordered is an *UnorderedError.
func (v *versions) unordered(format string, args ...any) error {
	return &UnorderedError{*v.stream, fmt.Sprintf(format, args...)}
}

// check refuses what cannot be ordered, and an object that is newer than the list that it is in, whose version is list;
// "" is none.
func (v *versions) check(object *frame.Object, list string) error {
	version := object.ResourceVersion
	switch {
	case object.Err != nil && version == "":
		return nil // it may have one
	case !change.IsVersion(version):
		return v.unordered("%s/%s has the resourceVersion %.40q", object.Namespace, object.Name, version)
	case list != "" && change.CompareVersions(version, list) > 0:
		return v.unordered("%s/%s has the resourceVersion %.40q in a list of %.40q", object.Namespace, object.Name, version, list)
	}
	return nil
}

// ended takes what a list at exactly one version ended with, and returns it. A server that answers with another one
// again and again is refused: its lists may lack what was changed in between.
func (v *versions) ended(err error) error {
	inexact, found := errors.AsType[*inexactError](err)
	switch {
	case err == nil:
		v.inexact = 0
	case found:
		if v.inexact++; v.inexact >= maxRestarts {
			return v.unordered("%v", inexact)
		}
	}
	return err
}

// An object that cannot be read ends no stream: a gap stands in its place, where its key is known for the key (I4).
// Where nobody knows whose it is, a watch is opened again, since it may have been broken on its way, and the second
// time at the same position a reconcile is due; in a list it is a gap of the stream.

// errNoName is why an item is nobody's that can be read.
var errNoName = errors.New("an item of the list has no name")

// markUnreadable withholds the record of an object that cannot be read. A delete needs no object.
func markUnreadable(rec *change.Record) {
	if rec.Op == change.Deleted {
		rec.FinalStateUnknown = true
		return
	}
	rec.Withheld = change.Unreadable
}
