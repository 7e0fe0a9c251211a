package checkpoint

import (
	"bytes"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
)

// inheritance is what one stream takes from another one.
type inheritance struct {
	from, to  string // the streams' names
	namespace string // of the objects; "" is all of them, and nothing is left then
}

// inheritanceOf says whether the stream of the name is another one that overlaps with the to.
func inheritanceOf(name string, to change.Stream) (inheritance, bool) {
	namespace, resource, found := strings.Cut(name, "/")
	if !found {
		namespace, resource = "", name
	}
	if resource != to.Resource.String() || (namespace == "") == (to.Namespace == "") {
		return inheritance{}, false
	}
	return inheritance{from: name, to: to.String(), namespace: to.Namespace}, true
}

// part is what the keys begin with, behind the prefix of a table, of the objects that move.
func (h *inheritance) part(prefix []byte) []byte {
	if h.namespace == "" {
		return prefix
	}
	return append(append(bytes.Clone(prefix), h.namespace...), '/')
}

// lacks says whether none of the objects within the limits move.
func (h *inheritance) lacks(limits change.Limits) bool {
	return h.namespace != "" && limits.Namespace != "" && limits.Namespace != h.namespace
}
