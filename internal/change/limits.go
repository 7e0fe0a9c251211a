package change

import "strings"

// Limits say which objects a requested snapshot is of; the zero value is all. It lists no others, and tells of no other
// that it is gone.
type Limits struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	Selector  string `json:"selector,omitempty"` // of labels
}

// String says it in words, "" for all.
func (l Limits) String() string {
	var parts []string
	for _, part := range [][2]string{{"namespace ", l.Namespace}, {"name ", l.Name}, {"labels ", l.Selector}} {
		if part[1] != "" {
			parts = append(parts, part[0]+part[1])
		}
	}
	return strings.Join(parts, ", ")
}

// Reach says whether the stream may have objects within the limits.
func (l Limits) Reach(s *Stream) bool {
	return l.Namespace == "" || !s.Resource.ClusterScoped && (s.Namespace == "" || s.Namespace == l.Namespace)
}
