package shape

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/transform"
)

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
// kept. A sink's own rules come after those of the resource.
func NewToday(rules transform.Rules, key transform.Key, sinks ...transform.Rules) (*Today, error) {
	return NewTodayOf([]Entry{{Rules: rules}}, key, sinks...)
}

// NewTodayOf is for rules that depend on the object. Those count of all entries of its namespace: which labels it had
// before other rules cut them, nobody knows.
func NewTodayOf(entries []Entry, key transform.Key, sinks ...transform.Rules) (*Today, error) {
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
