package checkpoint

import (
	"strconv"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
)

// streams are what the state knows of each stream beside its objects.
type streams struct{ *database }

// Resource is what the stream of the name is of, false where the state does not know. A stream outlives its resource:
// the sinks are still to be told that its objects are gone. What is on disk of it may outlive the stream.
func (s streams) Resource(stream string) (change.Stream, bool, error) {
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

// Define notes that the stream is of a custom resource, whose definition has the generation: that it is not served says
// nothing then, and that the definition is gone says everything.
func (s streams) Define(stream string, generation int64) error {
	return s.set(definedKey(stream), strconv.AppendInt(nil, generation, 10))
}

// Defined is what Define noted, false where it was not called.
func (s streams) Defined(stream string) (generation int64, found bool, err error) {
	value, found, err := s.get(definedKey(stream))
	if err != nil || !found {
		return 0, false, err
	}
	if generation, err = strconv.ParseInt(string(value), 10, 64); err != nil {
		return 0, false, s.badValue("the definition of "+stream, err)
	}
	return generation, true, nil
}

// appendResource appends what a stream's name does not tell: version, kind, and "c" of a cluster-scoped resource.
func appendResource(dst []byte, r change.Resource) []byte {
	scope := ""
	if r.ClusterScoped {
		scope = "c"
	}
	return append(dst, strings.Join([]string{r.Version, r.Kind, scope}, "\x00")...)
}
