package source

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecdc/kubecdc/internal/change"
)

// checkServer asks, before each watch and each reconcile, who the server is and where it stands. A position means
// something only in the history that it was reached in: another cluster behind the same address, and an etcd that was
// restored to the past, begin a new epoch.
func (s *Stream) checkServer(ctx context.Context) error {
	if s.ClusterUID == "" {
		return s.checkServerVersion(ctx)
	}
	uid, err := s.Client.clusterUID(ctx)
	if err != nil {
		return fmt.Errorf("ask the server which cluster it serves: %w", err)
	}
	if uid != s.ClusterUID {
		s.ClusterUID = uid
		s.enqueue(change.Owed{Reason: change.Epoch})
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
	if change.CompareVersions(now, s.cursor.position.ResourceVersion) < 0 {
		s.enqueue(change.Owed{Reason: change.Epoch})
	}
	return nil
}

// clusterUID is the uid of namespace kube-system, which is the cluster's.
func (c *Client) clusterUID(ctx context.Context) (string, error) {
	body, err := c.rest.Get().AbsPath("/api/v1/namespaces", metav1.NamespaceSystem).MaxRetries(0).Do(ctx).Raw()
	if err != nil {
		return "", err
	}
	var namespace metav1.PartialObjectMetadata
	if err := json.Unmarshal(body, &namespace); err != nil {
		return "", fmt.Errorf("decode namespace %s: %w", metav1.NamespaceSystem, err)
	}
	if namespace.UID == "" {
		return "", fmt.Errorf("namespace %s has no uid", metav1.NamespaceSystem)
	}
	return string(namespace.UID), nil
}
