package source

import (
	"context"
	"errors"

	"github.com/kubecdc/kubecdc/internal/change"
)

// A stream whose server's resourceVersions say nothing is refused: nobody could tell what of it is new, its events
// would have the same ids, and updates would be lost silently (I4). It is reported as one that is forbidden, others go
// on.

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
	gap := change.Snapshot{Reason: change.Stale, From: version, ResourceVersion: version}
	return errors.Join(err, s.pushUnreadable(ctx, gap, err))
}

// isRefused is why the stream is not read any more, nil while it is.
func (s *Stream) isRefused() error {
	if why := s.refused.Load(); why != nil {
		return *why
	}
	return nil
}
