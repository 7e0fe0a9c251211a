package shape

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/filter"
	"github.com/kubecdc/kubecdc/internal/scan"
	"github.com/kubecdc/kubecdc/internal/transform"
)

// Options says what of a resource's records goes on.
type Options struct {
	Ops    []string // "added", "updated", "deleted"; none is all. What a snapshot finds goes with the first two
	Filter string   // in CEL; "" is all
	Before bool     // records have the object as it was delivered last
	// WithholdFailed keeps a record from all sinks whose filter fails; otherwise it goes on. It becomes a dead letter.
	WithholdFailed bool
	Rules          transform.Rules
	Key            transform.Key // of the hashes; needed where there are rules
	// Failed is told of an object that a filter or a rule could not be applied to. It returns at once.
	Failed func(rec *change.Record, err error)
}

// Shape is what Options say, ready to be applied. It is safe for concurrent use.
type Shape struct {
	ops      []string
	filter   *filter.Filter       // nil is all
	rules    *transform.Transform // nil leaves objects as they are
	again    *transform.Transform // the rules, for what went through some already; nil where nothing does
	parts    []Part               // where there are some, each record has that of its object, and nothing else counts
	workers  sync.Pool
	withhold bool
	failed   func(*change.Record, error)
}

// worker has the memory that one record after the other is shaped with.
type worker struct {
	proof scan.Proof
	rules *transform.Worker
}

// prove looks at the object once for all that is asked of it.
func (s *Shape) prove(object []byte) *worker {
	w, ready := s.workers.Get().(*worker)
	if !ready {
		w = &worker{}
	}
	key := ""
	if s.rules != nil {
		key = s.rules.Watched()
		if w.rules == nil {
			w.rules = s.rules.Worker()
		}
	}
	w.proof.Prove(object, key)
	return w
}

func (s *Shape) release(w *worker) {
	w.proof.Forget()
	s.workers.Put(w)
}

// New returns nil where everything goes on as it is. An error names the expression, path or pattern that is wrong.
func New(o Options) (*Shape, error) {
	if len(o.Ops) == 0 && o.Filter == "" && o.Rules.Empty() {
		return nil, nil
	}
	s := &Shape{ops: o.Ops, withhold: o.WithholdFailed, failed: o.Failed}
	var err error
	if o.Filter != "" {
		if s.filter, err = filter.New(o.Filter, filter.Options{Before: o.Before}); err != nil {
			return nil, err
		}
	}
	if !o.Rules.Empty() {
		if s.rules, err = transform.New(o.Rules, o.Key); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Apply marks the record as filtered where it does not go on, and otherwise gives its object the form in which it does.
// A record whose filter fails goes on, or is withheld; an object whose cuts and hashes fail does not, and only its
// identity does (I9).
func (s *Shape) Apply(rec *change.Record) {
	if !rec.Op.OfObject() {
		return
	}
	if len(s.parts) > 0 {
		s.applyPart(rec)
		return
	}
	if rec.Withheld != "" { // there is no object to look at
		rec.Filtered = !s.wants(rec)
		return
	}
	if !s.wants(rec) {
		withdraw(rec)
		return
	}
	if rec.Object == nil || s.filter == nil && s.rules == nil {
		return
	}
	w := s.prove(rec.Object)
	defer s.release(w)
	if !s.passes(rec, &w.proof) {
		withdraw(rec)
		return
	}
	if s.rules == nil {
		return
	}
	object, err := w.rules.Apply(rec.Object, &w.proof, owner(rec))
	if err != nil {
		s.failed(rec, err)
		object = identity(rec)
	}
	rec.Object = object
}

// withdraw leaves of a record what the position needs.
func withdraw(rec *change.Record) {
	rec.Filtered, rec.Object, rec.Before, rec.Actor, rec.Involved = true, nil, nil, nil, nil
}

// withheldByFilter is why a record is withheld whose filter failed.
const withheldByFilter = "filter"

// passes says whether the filter lets the record go on.
func (s *Shape) passes(rec *change.Record, proof *scan.Proof) bool {
	if s.filter == nil {
		return true
	}
	passes, err := s.filter.Passes(rec, proof)
	if err != nil {
		if s.withhold {
			rec.Withheld = withheldByFilter
		}
		s.failed(rec, err)
		return true
	}
	return passes
}

// wants says whether the record's operation is among those that go on. What a snapshot finds goes with two, and so does
// an update that the watch tells beside it: the snapshot leaves out what the watch has told (I4).
func (s *Shape) wants(rec *change.Record) bool {
	if rec.Op == change.Replaced || rec.Op == change.Sync || rec.Beside {
		return len(s.ops) == 0 || slices.Contains(s.ops, change.Added.String()) || slices.Contains(s.ops, change.Updated.String())
	}
	return len(s.ops) == 0 || slices.Contains(s.ops, rec.Op.String())
}

// owner is the record's object, as hashes of its values know it. They outlive a change of its resource's version.
func owner(rec *change.Record) transform.Owner {
	res := &rec.Stream.Resource
	return transform.Owner{Group: res.Group, Kind: res.Kind, Namespace: rec.Key.Namespace, Name: rec.Key.Name}
}

// identity is all that is left of an object that cannot be redacted.
func identity(rec *change.Record) []byte {
	type metadata struct {
		Name            string `json:"name"`
		Namespace       string `json:"namespace,omitempty"`
		UID             string `json:"uid"`
		ResourceVersion string `json:"resourceVersion"`
	}
	text, err := json.Marshal(struct {
		APIVersion string   `json:"apiVersion"`
		Kind       string   `json:"kind"`
		Metadata   metadata `json:"metadata"`
	}{
		rec.Stream.Resource.APIVersion(), rec.Stream.Resource.Kind,
		metadata{rec.Key.Name, rec.Key.Namespace, rec.UID, rec.ResourceVersion},
	})
	if err != nil { // strings alone can always be written
		panic(fmt.Sprintf("write the identity of an object: %v", err))
	}
	return text
}
