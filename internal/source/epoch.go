package source

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubecdc/kubecdc/internal/change"
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

// clusterUID is the uid of namespace kube-system, which is the cluster's, as of a question behind since.
func (c *Client) clusterUID(ctx context.Context, since time.Time) (string, error) {
	return c.uid.get(ctx, freshness{since, c.maxAge}, func(ctx context.Context) (string, error) {
		return readClusterUID(ctx, c.rest.Get().MaxRetries(0))
	})
}

func readClusterUID(ctx context.Context, request *rest.Request) (string, error) {
	var namespace metav1.PartialObjectMetadata
	if err := decodeAnswer(request.AbsPath("/api/v1/namespaces", metav1.NamespaceSystem).Do(ctx), &namespace); err != nil {
		return "", err
	}
	if namespace.UID == "" {
		return "", fmt.Errorf("namespace %s has no uid", metav1.NamespaceSystem)
	}
	return string(namespace.UID), nil
}
