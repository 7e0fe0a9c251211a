package frame

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
	"unsafe"

	"github.com/kubecdc/kubecdc/internal/scan"
	"github.com/kubecdc/kubecdc/internal/scan/slab"
)

// Type is what a watch frame says has happened, as on the wire.
type Type string

// The types of a frame.
const (
	Added    Type = "ADDED"
	Modified Type = "MODIFIED"
	Deleted  Type = "DELETED"
	Bookmark Type = "BOOKMARK" // the watch has come to Object.ResourceVersion
	Error    Type = "ERROR"    // the watch ends; Frame.Status says why
)

// parseType is the type that the JSON names.
func parseType(value []byte) (Type, error) {
	if len(value) < len(`""`) || value[0] != '"' {
		return "", errors.New("the frame has no type")
	}
	name := value[1 : len(value)-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		name = []byte(scan.TextOf(value))
	}
	for _, t := range [...]Type{Added, Modified, Deleted, Bookmark, Error} {
		if string(t) == string(name) {
			return t, nil
		}
	}
	return "", fmt.Errorf("the frame has an unknown type %.32q", name)
}

// Frame is one event of a watch.
type Frame struct {
	Type   Type
	Object Object // of every type but Error
	Status []byte // of Error: the JSON of a metav1.Status
}

// Object is one object of a watch or a list.
//
// Strings and JSON share memory that is never written again, and that other objects of the stream share: who keeps a
// string for longer than the object clones it.
type Object struct {
	Namespace, Name, UID, ResourceVersion string
	// JSON is the object on one line, less the cuts.
	JSON []byte
	// Actor, where it is asked for, are the newest entries of managedFields, a list of JSON; nil where nobody is named.
	Actor []byte
	// Err, where not nil, is why the object cannot be read: a *SyntaxError. JSON is nil then, and of the names those
	// are set that could be found.
	Err error
}

// Options say what becomes of the objects. The zero value makes every cut.
type Options struct {
	// KeepManagedFields leaves metadata.managedFields in.
	KeepManagedFields bool
	// KeepLastApplied leaves kubectl's annotation in that repeats the object as it was last applied.
	KeepLastApplied bool
	// Actor asks for Object.Actor.
	Actor bool
	// Kind and APIVersion are put in front of an item of a list that has none, as the items of built-in types, so that
	// an object looks the same from list and watch. A watch always has them.
	Kind, APIVersion string
	// Lend leaves the JSON of a watch's objects in memory that the next frame is read into. It is for who makes other
	// objects of them; what is to last goes through Reader.Keep. Names last in any case.
	Lend bool
	// maxBytes is the longest frame, or item of a list, that is read; 0 is defaultMaxBytes.
	maxBytes int
}

// defaultMaxBytes is far above the 9.4 MB that API servers write.
const defaultMaxBytes = 64 << 20

// lastApplied is kubectl's annotation.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// marks is what a scan found in an object: where its values are, and what is to be cut, in order. One of which the scan
// is not sure is not found itself, whatever is of its values.
type marks struct {
	self, kind, apiVersion span
	meta                   metadata
	cuts                   []span
}

// metadata is where an object's metadata and the values in it are, of whatever type. Of a key that comes twice the last
// one counts.
type metadata struct {
	self, namespace, name, uid, version span
	managedFields, annotations          span
	lastApplied                         span // of the annotations
}

// scanner makes objects from their bytes in a frame or a list.
type scanner struct {
	opts  Options
	slab  slab.Slab
	lent  []byte // to the object before, and to the next one
	marks marks
	err   error // of the strings of the object
	actors
}

// mark marks the object at the cursor, and says whether it is sure. Where its end is known, 0 if not, what is after its
// metadata is stepped over without a look.
func (s *scanner) mark(c *cursor, end int) bool {
	m, start := &s.marks, c.pos
	*m = marks{cuts: m.cuts[:0]}
	c.enter()
	for c.member() {
		switch string(c.key) {
		case "metadata":
			s.markMetadata(c)
		case "kind":
			c.value(&m.kind)
		case "apiVersion":
			c.value(&m.apiVersion)
		default:
			if end > 0 && m.meta.self.found() && !c.unsure {
				m.self, c.pos = span{start, end}, end
				return true
			}
			c.skip()
		}
	}
	if !c.unsure {
		m.self = span{start, c.pos}
	}
	return !c.unsure
}

func (s *scanner) markMetadata(c *cursor) {
	m := &s.marks.meta
	start := c.pos
	if *m = (metadata{}); !c.at('{') {
		c.value(&m.self)
		return
	}
	c.enter()
	for c.member() {
		switch string(c.key) {
		case "name":
			c.value(&m.name)
		case "namespace":
			c.value(&m.namespace)
		case "uid":
			c.value(&m.uid)
		case "resourceVersion":
			c.value(&m.version)
		case "annotations":
			s.markAnnotations(c)
		case "managedFields":
			c.entries(&m.managedFields)
			s.cut(c, s.opts.KeepManagedFields)
		default:
			c.skip()
		}
	}
	m.self = span{start, c.pos}
}

func (s *scanner) markAnnotations(c *cursor) {
	m := &s.marks.meta
	start := c.pos
	if !c.at('{') {
		c.value(&m.annotations)
		return
	}
	c.enter()
	for c.member() {
		switch string(c.key) {
		case lastApplied:
			c.value(&m.lastApplied)
			s.cut(c, s.opts.KeepLastApplied)
		default:
			c.skip()
		}
	}
	m.annotations = span{start, c.pos}
}

func (s *scanner) cut(c *cursor, keep bool) {
	if m := &s.marks; !keep {
		last := span{}
		if n := len(m.cuts); n > 0 {
			last = m.cuts[n-1]
		}
		m.cuts = append(m.cuts, c.cut(last))
	}
}

// unreadable is what can be told of an object that is refused as a whole, although only a part is no JSON: of the
// names, those that are marked.
func (s *scanner) unreadable(data []byte, why error) Object {
	m := &s.marks.meta
	return Object{
		Namespace: scan.TextOf(m.namespace.in(data)), Name: scan.TextOf(m.name.in(data)), UID: scan.TextOf(m.uid.in(data)),
		ResourceVersion: scan.TextOf(m.version.in(data)), Err: &SyntaxError{why},
	}
}

// broken is why the data, in which a cursor became unsure, is not what it should be.
func broken(data []byte, otherwise error) error {
	var all json.RawMessage
	return cmp.Or(json.Unmarshal(data, &all), otherwise)
}

// object copies what is marked in data, with front after the opening brace.
func (s *scanner) object(data, front []byte) (Object, error) {
	m := &s.marks
	if err := m.meta.check(data); err != nil {
		return Object{}, err
	}
	o := Object{JSON: s.splice(data, front)}
	s.err = nil
	o.Namespace = s.text(data, m.meta.namespace)
	o.Name = s.text(data, m.meta.name)
	o.UID = s.text(data, m.meta.uid)
	o.ResourceVersion = s.text(data, m.meta.version)
	if s.opts.Actor {
		o.Actor = s.actors.of(m.meta.managedFields.in(data))
	}
	return o, s.err
}

// check refuses what is no object where one belongs.
func (m *metadata) check(data []byte) error {
	if isOther(data, m.self) {
		return errors.New("metadata is no object")
	}
	if isOther(data, m.annotations) {
		return errors.New("metadata.annotations is no object")
	}
	return nil
}

// isOther says whether there is a value and it is neither an object nor null.
func isOther(data []byte, place span) bool {
	return place.found() && data[place.start] != '{' && !isNull(place.in(data))
}

func isNull(value []byte) bool { return string(value) == "null" }

// splice copies the object, less the cuts, with front after its opening brace.
func (s *scanner) splice(data, front []byte) []byte {
	m := &s.marks
	size := m.self.end - m.self.start + len(front)
	for _, cut := range m.cuts {
		size -= cut.end - cut.start
	}
	out := s.room(size)
	n, from := 0, m.self.start
	if len(front) > 0 {
		n = copy(out, "{")
		n += copy(out[n:], front)
		from++
	}
	for _, cut := range m.cuts {
		n += copy(out[n:], data[from:cut.start])
		from = cut.end
	}
	copy(out[n:], data[from:m.self.end])
	return out
}

// room is memory for an object of so many bytes.
func (s *scanner) room(size int) []byte {
	switch {
	case !s.opts.Lend:
		return s.slab.Take(size)
	case size > keepWindow: // few are
		return make([]byte, size)
	case size > cap(s.lent):
		s.lent = make([]byte, min(2*size, keepWindow))
	}
	return s.lent[:size:size]
}

// text copies the string at place in data. The first error stays.
func (s *scanner) text(data []byte, place span) string {
	value := place.in(data)
	switch {
	case len(value) == 0 || isNull(value) || string(value) == `""`:
		return ""
	case value[0] != '"':
		s.err = errors.Join(s.err, errors.New("a name, namespace, uid or resourceVersion is no string"))
		return ""
	case bytes.IndexByte(value, '\\') >= 0 || !utf8.Valid(value):
		var unquoted string
		if err := json.Unmarshal(value, &unquoted); err != nil {
			s.err = errors.Join(s.err, err)
		}
		return unquoted
	}
	text := append(s.slab.Take(len(value) - len(`""`))[:0], value[1:len(value)-1]...)
	return unsafe.String(&text[0], len(text))
}
