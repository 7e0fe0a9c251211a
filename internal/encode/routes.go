package encode

import "github.com/kubecdc/kubecdc/internal/change"

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
