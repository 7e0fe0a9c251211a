package checkpoint

import (
	"bytes"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
)

// heritage is what one stream takes from another one.
type heritage struct {
	from, to  string // the streams' names
	namespace string // of the objects; "" is all of them, and nothing is left then
}

// heritageOf says whether the stream of the name is another one that overlaps with the to.
func heritageOf(name string, to change.Stream) (heritage, bool) {
	namespace, resource, found := strings.Cut(name, "/")
	if !found {
		namespace, resource = "", name
	}
	if resource != to.Resource.String() || (namespace == "") == (to.Namespace == "") {
		return heritage{}, false
	}
	return heritage{from: name, to: to.String(), namespace: to.Namespace}, true
}

// part is what the keys begin with, behind the prefix of a table, of the objects that move.
func (h *heritage) part(prefix []byte) []byte {
	if h.namespace == "" {
		return prefix
	}
	return append(append(bytes.Clone(prefix), h.namespace...), '/')
}
