package shape

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/scan"
	"github.com/kubecdc/kubecdc/internal/shape/filter"
	"github.com/kubecdc/kubecdc/internal/shape/involved"
	"github.com/kubecdc/kubecdc/internal/shape/transform"
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
		if s.filter, err = filter.New(o.Filter, o.Before); err != nil {
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
	if rec.Op == change.Replaced || rec.Op == change.Sync || rec.DuringSnapshot {
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

// Part is the Shape of some of a stream's objects.
type Part struct {
	Takes   func(namespace string) bool
	Matches func(Labels) bool // nil is any labels
	Shape   *Shape            // nil leaves records as they are
}

// Labels is one label of an object, by its key.
type Labels func(key string) (value string, found bool)

// Of is the Shape that gives each record that of the first part which takes its object. The last part takes all that no
// other does.
func Of(parts ...Part) *Shape {
	s := &Shape{parts: parts}
	for i := range parts {
		if made := parts[i].Shape; made != nil && made.rules != nil {
			made.again = made.rules.Again()
		}
	}
	return s
}

// applyPart finds the part of the record's object. An object whose labels nobody knows goes on if it may be of a part
// that lets it.
func (s *Shape) applyPart(rec *change.Record) {
	var possible []Part // the parts that the objects of the namespace may be of
	for i, part := range s.parts {
		isLast := i == len(s.parts)-1
		if !isLast && !part.Takes(rec.Key.Namespace) {
			continue
		}
		if possible = append(possible, part); part.Matches == nil {
			break
		}
	}
	if rec.Object == nil || rec.Withheld != "" {
		for _, part := range possible {
			if part.Shape == nil || part.Shape.wants(rec) {
				return
			}
		}
		possible[0].Shape.Apply(rec)
		return
	}
	part := partOf(possible, rec.Object).Shape
	if part == nil {
		return
	}
	part.Apply(rec)
	if rec.Before == nil || part.again == nil {
		return
	}
	before, err := part.again.Apply(nil, rec.Before, owner(rec)) // which may have been of another part
	if err != nil {
		part.failed(rec, fmt.Errorf("the object as it was: %w", err))
	}
	rec.Before = before
}

// partOf is that of the object. What cannot be read has no labels, and goes through rules, which leave its identity
// alone (I9).
func partOf(possible []Part, object []byte) *Part {
	last := &possible[len(possible)-1]
	if len(possible) == 1 {
		return last
	}
	var proof scan.Proof
	proof.Prove(object, "")
	labels := func(key string) (string, bool) { return proof.FindText("metadata", "labels", key) }
	for i := range possible {
		part := &possible[i]
		if proof.Whole() && (part.Matches == nil || part.Matches(labels)) || !proof.Whole() && part.Shape != nil && part.Shape.rules != nil {
			return part
		}
	}
	return last
}

// Entry has rules of some of a stream's objects.
type Entry struct {
	Rules transform.Rules
	For   string                      // tells apart what it is for; "" is everything
	Takes func(namespace string) bool // nil takes all
}

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
		return s.left(object, transform.Owner{Group: of.Group, Kind: of.Kind, Namespace: key.Namespace, Name: key.Name})
	})
	return &narrowed
}

// left is what the rules alone leave of the owner's object.
func (s *Shape) left(object []byte, of transform.Owner) ([]byte, error) {
	w := s.prove(object)
	defer s.release(w)
	return w.rules.Apply(object, &w.proof, of)
}

// cut is one object of the record by the rules alone; or the other one, where that fails.
func (s *Shape) cut(rec *change.Record, object, otherwise []byte) []byte {
	cut, err := s.left(object, owner(rec))
	if err != nil {
		s.failed(rec, fmt.Errorf("what a sink leaves out: %w", err))
		return otherwise
	}
	return cut
}

// Today is how the objects of a stream are cut and redacted now. What was put on disk by other rules goes through it
// before it goes out or is shown (I9).
type Today struct {
	// Form tells the rules apart, and the key of the hashes, which cannot be read out of it.
	Form string
	// Changes says that records may say what changed.
	Changes bool
	// Actors says that records may name who changed the object.
	Actors bool
	// Involved says that records of Events may tell of the object that they are about.
	Involved bool
	rules    []part // one after the other
}

// part are rules of some of the objects.
type part struct {
	*transform.Transform
	takes func(namespace string) bool // nil takes all
}

// NewToday is for rules with everything in them that is cut, also that which is cut from every object unless it is
// kept. A sink's own rules come after those of the resource. Of rules that depend on the object, those count of all
// entries of its namespace: which labels it had before other rules cut them, nobody knows.
func NewToday(entries []Entry, key transform.Key, sinks ...transform.Rules) (*Today, error) {
	t := &Today{}
	var all []byte
	var rules []transform.Rules
	for _, rules := range sinks {
		entries = append(entries[:len(entries):len(entries)], Entry{Rules: rules})
	}
	for _, e := range entries {
		text, err := json.Marshal(e.Rules)
		if err != nil {
			return nil, fmt.Errorf("describe what is cut and redacted: %w", err)
		}
		all, rules = append(append(all, e.For...), text...), append(rules, e.Rules)
		if e.Rules.Empty() {
			continue
		}
		made, err := transform.New(e.Rules, key)
		if err != nil {
			return nil, err
		}
		t.rules = append(t.rules, part{made, e.Takes})
	}
	t.Form = digest(all) + "." + digest(key.Form(rules...))
	return t, nil
}

// Involving adds to the form by which rules Events tell of the objects that they are about.
func (t *Today) Involving(rules []byte) {
	_, key, _ := strings.Cut(t.Form, ".")
	t.Involved, t.Form = true, digest(append(rules, t.Form...))+"."+key
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12])
}

// Reshape brings the record's objects, which were shaped by the rules of the form, into today's; "" is a form that is
// not known. Hashes that were made with today's key stay. After an error the objects are as they were.
func (t *Today) Reshape(rec *change.Record, form string) error {
	if !t.Actors {
		rec.Actor = nil
	}
	if !t.Involved || form != t.Form {
		rec.Involved = nil
	}
	if !t.Changes || form != t.Form { // a pointer may name what is cut now (I9)
		rec.Changed, rec.ChangedCut = nil, false
	}
	if form == t.Form {
		return nil
	}
	_, key, known := strings.Cut(form, ".")
	again := known && strings.HasSuffix(t.Form, "."+key)
	shaped := [2][]byte{rec.Object, rec.Before}
	for _, rules := range t.rulesOf(rec.Key.Namespace) {
		if again {
			rules = rules.Again()
		}
		for i, object := range shaped {
			if object == nil {
				continue
			}
			var err error
			if shaped[i], err = rules.Apply(nil, object, owner(rec)); err != nil {
				return err
			}
		}
	}
	rec.Object, rec.Before = shaped[0], shaped[1]
	return nil
}

// rulesOf are those of the namespace's objects: all, where it is of none of the entries now.
func (t *Today) rulesOf(namespace string) (rules []*transform.Transform) {
	takes := func(p part) bool { return p.takes != nil && p.takes(namespace) }
	some := slices.ContainsFunc(t.rules, takes)
	for _, p := range t.rules {
		if p.takes == nil || !some || takes(p) {
			rules = append(rules, p.Transform)
		}
	}
	return rules
}

// Ignoring says whether the record's object differs from that before in the paths alone. What changes with every update
// is always among them, and what cannot be compared differs. It is safe for concurrent use.
func Ignoring(paths []string) (func(rec *change.Record) bool, error) {
	for _, path := range paths {
		if _, err := transform.Steps(path); err != nil {
			return nil, err
		}
	}
	always := []string{".metadata.resourceVersion", ".metadata.managedFields"}
	made, err := transform.New(transform.Rules{Drop: append(always, paths...)}, transform.Key{Secret: []byte("nothing is hashed")})
	if err != nil {
		return nil, err
	}
	rest := &Shape{rules: made.Pruned()}
	return func(rec *change.Record) bool {
		before, err := rest.left(rec.Before, transform.Owner{})
		if err != nil {
			return false
		}
		after, err := rest.left(rec.Object, transform.Owner{})
		return err == nil && bytes.Equal(before, after)
	}, nil
}
