package source

import (
	"context"
	"fmt"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// standing is where the server stood when it was asked last.
type standing struct {
	version string
	asked   time.Time
}

// serverVersion asks where the server stands, by a list of one object.
func (s *Stream) serverVersion(ctx context.Context) (string, error) {
	if fresh := (freshness{s.trust.asked(), s.Client.maxAge}); fresh.has(s.standing.asked) {
		return s.standing.version, nil
	}
	asked := time.Now()
	version, err := s.askVersion(ctx)
	if version != "" {
		s.standing = standing{version, asked}
	}
	return version, err
}

// askVersion asks the server, whatever it said before.
func (s *Stream) askVersion(ctx context.Context) (string, error) {
	var first *frame.Object
	meta, err := s.collection.list(ctx, page{limit: 1}, func(object frame.Object) error { first = &object; return nil })
	switch {
	case err != nil:
		return "", fmt.Errorf("ask the server for the version of %s: %w", s.stream, err)
	case !change.IsVersion(meta.ResourceVersion):
		return "", s.versions.unordered("its list has the resourceVersion %.40q", meta.ResourceVersion)
	case first != nil:
		err = s.versions.check(first, meta.ResourceVersion)
	}
	return meta.ResourceVersion, err
}
