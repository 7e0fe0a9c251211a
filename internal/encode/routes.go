package encode

import (
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Routes is a Destination of which some streams have their own.
type Routes struct {
	Others Destination
	// Own is where the stream's records go, nil where that is Others.
	Own func(*change.Stream) Destination
}

// Of is the record's place.
func (r Routes) Of(rec *change.Record) string { return string(r.Append(nil, rec)) }

// Append appends the record's place to dst.
func (r Routes) Append(dst []byte, rec *change.Record) []byte {
	return r.To(rec.Stream).Append(dst, rec)
}

// To is where the stream's records go.
func (r Routes) To(stream *change.Stream) Destination {
	if own := r.Own(stream); own != nil {
		return own
	}
	return r.Others
}

// Filters are the narrowest wildcard subjects that cover all of the subjects, none of them covered by another.
func Filters(subjects ...*Subject) []string {
	var filters []string
	for _, s := range subjects {
		filter := s.Filter()
		if coveredByAny(filters, filter) {
			continue
		}
		kept := filters[:0]
		for _, other := range filters {
			if !coveredByAny([]string{filter}, other) {
				kept = append(kept, other)
			}
		}
		filters = append(kept, filter)
	}
	return filters
}

func coveredByAny(filters []string, subject string) bool {
	for _, filter := range filters {
		if covers(strings.Split(filter, "."), strings.Split(subject, ".")) {
			return true
		}
	}
	return false
}

// covers says whether every subject of the one wildcard is one of the other; "*" is a token of any text.
func covers(wide, narrow []string) bool {
	if len(wide) != len(narrow) {
		return false
	}
	for i, token := range wide {
		if token != "*" && token != narrow[i] {
			return false
		}
	}
	return true
}
