package shape

import (
	"fmt"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/involved"
	"github.com/kubecdc/kubecdc/internal/transform"
)

// Narrowed is the record as the Options of one sink leave it, which see only what those of its resource have left. The
// record, which other sinks share, stays as it is. Its id, key and version are those of the change, whatever the sink
// leaves out (I8).
func (s *Shape) Narrowed(rec *change.Record) *change.Record {
	if !rec.Op.OfObject() {
		return rec
	}
	narrowed := *rec
	if s.Apply(&narrowed); narrowed.Filtered || s.rules == nil {
		return &narrowed
	}
	if rec.Withheld != "" && rec.Object != nil { // a person looks at it
		narrowed.Object = s.cut(rec, rec.Object, identity(rec))
	}
	if rec.Before != nil {
		narrowed.Before = s.cut(rec, rec.Before, nil)
	}
	narrowed.Involved = involved.Narrow(&rec.Stream.Resource, narrowed.Object, rec.Involved, func(of involved.Kind, key change.Key, object []byte) ([]byte, error) {
		return s.rules.Apply(nil, object, transform.Owner{Group: of.Group, Kind: of.Kind, Namespace: key.Namespace, Name: key.Name})
	})
	return &narrowed
}

// cut is one object of the record by the rules alone; or the other one, where that fails.
func (s *Shape) cut(rec *change.Record, object, otherwise []byte) []byte {
	w := s.prove(object)
	defer s.release(w)
	cut, err := w.rules.Apply(object, &w.proof, owner(rec))
	if err != nil {
		s.failed(rec, fmt.Errorf("what a sink leaves out: %w", err))
		return otherwise
	}
	return cut
}
