package source

import (
	"context"
	"fmt"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// checkServer asks, before each watch and each reconcile, who the server is and where it stands. A position means
// something only in the history that it was reached in: another cluster behind the same address, and an etcd that was
// restored to the past, begin a new epoch.
func (s *Stream) checkServer(ctx context.Context) error {
	if s.ClusterUID == "" {
		return s.checkServerVersion(ctx)
	}
	uid, err := s.Client.clusterUID(ctx, s.trust.asked())
	if err != nil {
		return fmt.Errorf("ask the server which cluster it serves: %w", err)
	}
	if uid != s.ClusterUID {
		s.ClusterUID = uid
		s.schedule.add(change.Owed{Reason: change.Epoch})
		return nil
	}
	return s.checkServerVersion(ctx)
}

// checkServerVersion asks where the server stands. A watch from a version that the server has not reached is silent
// until it gets there, and loses everything in between; a list at exactly such a version fails for as long.
func (s *Stream) checkServerVersion(ctx context.Context) error {
	now, err := s.serverVersion(ctx)
	if err != nil {
		return err
	}
	if change.CompareVersions(now, s.cursor.position.ResourceVersion) < 0 || s.trust.suspect.Load() && s.isOtherHistory(ctx) {
		s.schedule.add(change.Owed{Reason: change.Epoch})
	}
	return nil
}

// isOtherHistory asks, after a failure, for the one object that is known best at exactly the position. An etcd that was
// restored and has overtaken the position since has it at an older version, or at one that was never delivered. It
// never says so of the same history; where the server no longer has the version, or the object was not touched since
// the restored one, it cannot tell, and the next resync finds what differs.
func (s *Stream) isOtherHistory(ctx context.Context) bool {
	p, at := s.proof, s.cursor.position.ResourceVersion
	if p.version == "" || s.schedule.isDue() {
		return false
	}
	object, found, version, err := s.collection.look(ctx, p.key, at)
	if err != nil {
		return false // whatever follows fails, too, or is gone
	}
	s.trust.suspect.Store(false)
	return version == at && !p.holds(&object, found) // a server that does not list at exactly the version proves nothing
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
