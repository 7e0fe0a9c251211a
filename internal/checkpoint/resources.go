package checkpoint

import (
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
)

// resources notes what the streams are of.
func (w *writer) resources(b *Batch) error {
	for _, stream := range b.Resources {
		if err := w.batch.Set(resourceKey(stream.String()), appendResource(nil, stream.Resource), nil); err != nil {
			return err
		}
	}
	return nil
}

// appendResource appends what a stream's name does not tell: version, kind, and "c" of a cluster-scoped resource.
func appendResource(dst []byte, r change.Resource) []byte {
	scope := ""
	if r.ClusterScoped {
		scope = "c"
	}
	return append(dst, strings.Join([]string{r.Version, r.Kind, scope}, "\x00")...)
}

// Resource is what the stream of the name is of, false where the state does not know. A stream outlives its resource:
// the sinks are still to be told that its objects are gone. What is on disk of it may outlive the stream.
func (s *Store) Resource(stream string) (change.Stream, bool, error) {
	value, found, err := s.get(resourceKey(stream))
	if err != nil || !found {
		return change.Stream{}, false, err
	}
	part := strings.Split(string(value), "\x00")
	if len(part) != 3 {
		return change.Stream{}, false, s.badValue("the resource of "+stream, errValue)
	}
	namespace, resource, found := strings.Cut(stream, "/")
	if !found {
		namespace, resource = "", stream
	}
	name, group, _ := strings.Cut(resource, ".")
	return change.Stream{Namespace: namespace, Resource: change.Resource{
		Group: group, Version: part[0], Name: name, Kind: part[1], ClusterScoped: part[2] == "c",
	}}, true, nil
}
