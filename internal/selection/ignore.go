package selection

import (
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/shape"
)

// IgnoreOf says of an update whether it differs from what was told last in nothing that matters; nil ignores none.
func IgnoreOf(s *Selected) (func(*change.Record) bool, error) {
	if len(s.Configured.Ignore) == 0 {
		return nil, nil
	}
	made, err := shape.NewIgnored(ignored(s.Stream.Resource, s.Configured))
	if err != nil {
		return nil, err
	}
	return made.Hide, nil
}

// ignored are the paths that the entry ignores in objects of the resource.
func ignored(resource change.Resource, configured *config.Resource) (paths []string) {
	for _, text := range configured.Ignore {
		if text == config.IgnoreHeartbeats {
			paths = append(paths, heartbeats(resource)...)
		} else {
			paths = append(paths, text)
		}
	}
	return paths
}

// IgnoredPaths are those that the entry names itself.
func IgnoredPaths(configured *config.Resource) []string {
	return ignored(change.Resource{}, configured)
}

// heartbeats are what changes in objects of the resource although nothing happens.
func heartbeats(resource change.Resource) []string {
	switch resource.String() {
	case "nodes":
		return []string{".status.conditions[*].lastHeartbeatTime"}
	case "pods":
		return []string{".status.conditions[*].lastProbeTime"}
	case "leases.coordination.k8s.io":
		return []string{".spec.renewTime"}
	case "endpoints", "endpointslices.discovery.k8s.io":
		return []string{".metadata.annotations['endpoints.kubernetes.io/last-change-trigger-time']"}
	}
	return nil
}
