package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// A stream whose server's resourceVersions say nothing is refused: nobody could tell what of it is new, its events
// would have the same ids, and updates would be lost silently (I4). It is reported as one that is forbidden, others go
// on.

// UnorderedError says that the resourceVersions of a stream cannot be ordered (KEP-5504).
type UnorderedError struct {
	Stream change.Stream
	Why    string
}

func (e *UnorderedError) Error() string {
	return fmt.Sprintf("read %s: %s: nobody can tell what is new (KEP-5504), so the stream is refused: take the resource out of the configuration, or have its server fixed, and start again",
		e.Stream, e.Why)
}

func (s *Stream) unordered(format string, args ...any) error {
	return &UnorderedError{s.stream, fmt.Sprintf(format, args...)}
}

// checkVersion refuses what cannot be ordered, and an object that is newer than the list that it is in, whose version
// is list; "" is none.
func (s *Stream) checkVersion(object *frame.Object, list string) error {
	version := object.ResourceVersion
	switch {
	case object.Err != nil && version == "":
		return nil // it may have one
	case !change.IsVersion(version):
		return s.unordered("%s/%s has the resourceVersion %.40q", object.Namespace, object.Name, version)
	case list != "" && change.CompareVersions(version, list) > 0:
		return s.unordered("%s/%s has the resourceVersion %.40q in a list of %.40q", object.Namespace, object.Name, version, list)
	}
	return nil
}

// refuse ends the stream for this life where the error says that it must, and announces so where something was
// delivered before. It returns the error.
func (s *Stream) refuse(ctx context.Context, err error) error {
	if _, unordered := errors.AsType[*UnorderedError](err); !unordered || s.isRefused() != nil {
		return err
	}
	s.refused.Store(&err)
	version := s.cursor.position.ResourceVersion
	if version == "" {
		return err
	}
	rec := &change.Record{
		Stream: &s.stream, Op: change.Gap, ResourceVersion: version, Received: time.Now(), Marks: &change.Marks{Rejected: change.Unreadable},
		Snapshot: &change.Snapshot{ID: version, Reason: change.Stale, From: version, ResourceVersion: version},
	}
	s.tellUnreadable(rec, err)
	return errors.Join(err, s.push(ctx, rec))
}

// isRefused is why the stream is not read any more, nil while it is.
func (s *Stream) isRefused() error {
	if why := s.refused.Load(); why != nil {
		return *why
	}
	return nil
}

// inexactError says that a server answered a list at exactly one version with another.
type inexactError struct{ asked, got string }

func (e *inexactError) Error() string {
	return fmt.Sprintf("the server listed resourceVersion %.40q where exactly %.40q was asked for", e.got, e.asked)
}

// countInexact takes what a list at exactly one version ended with. A server that answers with another one again and
// again is refused: its lists may lack what was changed in between.
func (s *Stream) countInexact(err error) error {
	inexact, found := errors.AsType[*inexactError](err)
	switch {
	case err == nil:
		s.inexact = 0
	case found:
		if s.inexact++; s.inexact >= maxRestarts {
			return s.unordered("%v", inexact)
		}
	}
	return err
}
