package frame

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf8"
	"unsafe"

	"github.com/kubecdc/kubecdc/internal/scan/slab"
)

// The two annotations that matter here.
const (
	lastApplied      = "kubectl.kubernetes.io/last-applied-configuration"
	initialEventsEnd = "k8s.io/initial-events-end"
)

// marks is what a scan found in an object: where its values are, and what is to be cut, in order.
type marks struct {
	self, kind, apiVersion span
	meta                   metadata
	cuts                   []span
}

// metadata is where an object's metadata and the values in it are, of whatever type.
type metadata struct {
	self, namespace, name, uid, version span
	managedFields, annotations          span
	lastApplied, eventsEnd              span // of the annotations
}

// scanner makes objects from their bytes in a frame or a list.
type scanner struct {
	opts  Options
	slab  slab.Slab
	lent  []byte // to the object before, and to the next one
	marks marks
	slow  int // how often the fast scan was unsure
	actors
}

// fast marks the object that starts at start, and says whether it is sure. Where its end is known, 0 if not, what is
// after its metadata is stepped over without a look.
func (s *scanner) fast(data []byte, start, end int) bool {
	m := &s.marks
	*m = marks{cuts: m.cuts[:0]}
	c := cursor{data: data, pos: start}
	c.enter()
	for c.member() {
		switch string(c.key) {
		case "metadata":
			s.fastMetadata(&c)
		case "kind":
			c.value(&m.kind)
		case "apiVersion":
			c.value(&m.apiVersion)
		default:
			if end > 0 && m.meta.self.found() {
				m.self = span{start, end}
				return !c.unsure
			}
			c.skip()
		}
	}
	m.self = span{start, c.pos}
	return !c.unsure
}

func (s *scanner) fastMetadata(c *cursor) {
	m := &s.marks.meta
	start := c.pos
	if m.self.found() || !c.at('{') {
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
			s.fastAnnotations(c)
		case "managedFields":
			c.entries(&m.managedFields)
			s.cut(c, s.opts.KeepManagedFields)
		default:
			c.skip()
		}
	}
	m.self = span{start, c.pos}
}

func (s *scanner) fastAnnotations(c *cursor) {
	m := &s.marks.meta
	start := c.pos
	if m.annotations.found() || !c.at('{') {
		c.value(&m.annotations)
		return
	}
	c.enter()
	for c.member() {
		switch string(c.key) {
		case lastApplied:
			c.value(&m.lastApplied)
			s.cut(c, s.opts.KeepLastApplied)
		case initialEventsEnd:
			c.value(&m.eventsEnd)
		default:
			c.skip()
		}
	}
	m.annotations = span{start, c.pos}
}

func (s *scanner) cut(c *cursor, keep bool) {
	if !keep {
		s.marks.cuts = append(s.marks.cuts, c.cut())
	}
}

// object copies what is marked in data, with front after the opening brace.
func (s *scanner) object(data, front []byte) (Object, error) {
	m := &s.marks
	if err := m.meta.check(data); err != nil {
		return Object{}, err
	}
	o := Object{JSON: s.splice(data, front)}
	t := texts{data: data, out: o.JSON, shift: len(front) - m.self.start, cuts: m.cuts}
	if s.opts.Lend {
		t.own = &s.slab
	}
	o.Namespace = t.text(m.meta.namespace)
	o.Name = t.text(m.meta.name)
	o.UID = t.text(m.meta.uid)
	o.ResourceVersion = t.text(m.meta.version)
	if s.opts.Actor {
		o.Actor = s.actors.of(m.meta.managedFields.in(data))
	}
	if end := m.meta.eventsEnd; end.found() && data[end.start] == '"' {
		o.InitialEventsEnd = t.text(end) == "true"
	}
	return o, t.err
}

// check refuses what is no object where one belongs.
func (m *metadata) check(data []byte) error {
	if isOther(data, m.self) {
		return faultf(m.self.start, "metadata is no object")
	}
	if isOther(data, m.annotations) {
		return faultf(m.annotations.start, "metadata.annotations is no object")
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

// texts reads strings of an object that was copied from data to out: data[i] became out[i+shift], but for the cuts
// before it. The first error stays.
type texts struct {
	data, out []byte
	shift     int
	cuts      []span
	own       *slab.Slab // of the strings; nil where they share that of out
	err       error
}

// text returns the string at place. Without escapes it is the same bytes in out: these are never written again, which
// is what a string asks for. Of an object that is lent it is a copy.
func (t *texts) text(place span) string {
	value := place.in(t.data)
	switch {
	case len(value) == 0 || isNull(value) || string(value) == `""`:
		return ""
	case value[0] != '"':
		t.err = errors.Join(t.err, faultf(place.start, "a name, namespace, uid or resourceVersion is no string"))
		return ""
	case bytes.IndexByte(value, '\\') >= 0 || !utf8.Valid(value):
		return t.decode(place)
	}
	at := place.start + len(`"`) + t.shift
	for _, cut := range t.cuts {
		if cut.end <= place.start {
			at -= cut.end - cut.start
		}
	}
	text := t.out[at : at+len(value)-len(`""`)]
	if t.own != nil {
		text = append(t.own.Take(len(text))[:0], text...)
	}
	return unsafe.String(&text[0], len(text))
}

func (t *texts) decode(place span) (s string) {
	t.err = errors.Join(t.err, decode(t.data, place, &s))
	return s
}

// decode is json.Unmarshal for a part of data, if there is such a part.
func decode(data []byte, place span, into any) error {
	if !place.found() {
		return nil
	}
	if err := json.Unmarshal(place.in(data), into); err != nil {
		return &fault{at: place.start, err: err}
	}
	return nil
}
