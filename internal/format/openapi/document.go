package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/kubecdc/kubecdc/internal/shape/transform"
)

// Document is what a server publishes for one version of one group. It has the texts of its schemas, and decodes those
// that are asked for: decoded they take ten times as much memory.
type Document struct {
	// LeftOut counts the schemas that are not kept, since there would be too much of them (I6).
	LeftOut int

	texts map[string]json.RawMessage
	kinds map[kind]string // the names of their schemas
	size  int             // of the texts
}

// mostText is how much of a document is kept (I6).
const mostText = 32 << 20

// schema is what leads to the fields of an object or of a part of one, and says what they are.
type schema struct {
	Ref         string             `json:"$ref"`
	All         []*schema          `json:"allOf"`
	Any         []*schema          `json:"anyOf"`
	One         []*schema          `json:"oneOf"`
	Type        string             `json:"type"`
	Format      string             `json:"format"`
	Nullable    bool               `json:"nullable"`
	Properties  map[string]*schema `json:"properties"`
	Additional  json.RawMessage    `json:"additionalProperties"`
	Items       *schema            `json:"items"`
	Open        bool               `json:"x-kubernetes-preserve-unknown-fields"`
	Embedded    bool               `json:"x-kubernetes-embedded-resource"`
	IntOrString bool               `json:"x-kubernetes-int-or-string"`
}

type kind struct{ Group, Version, Kind string }

// Read reads a document of OpenAPI v3, schema by schema.
func Read(from Text) (*Document, error) {
	d := &Document{texts: map[string]json.RawMessage{}, kinds: map[kind]string{}}
	p := &parts{from: from}
	p.Decoder = json.NewDecoder(p)
	err := p.members(func(name string) error {
		if name != "components" {
			return p.skip()
		}
		return p.members(func(name string) error {
			if name != "schemas" {
				return p.skip()
			}
			return p.members(func(name string) error {
				text, err := p.value(nil)
				if err == nil {
					d.add(name, text)
				}
				return err
			})
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read the API server's schemas: %w", err)
	}
	return d, nil
}

// add keeps a schema. Of several of one kind the first name counts.
func (d *Document) add(name string, text json.RawMessage) {
	if len(text) > mostOne || d.size+len(text) > mostText {
		d.LeftOut++
		return
	}
	d.texts[name], d.size = text, d.size+len(text)
	var of struct {
		Kinds []kind `json:"x-kubernetes-group-version-kind"`
	}
	if json.Unmarshal(text, &of) != nil {
		return
	}
	for _, k := range of.Kinds {
		if known, found := d.kinds[k]; !found || name < known {
			d.kinds[k] = name
		}
	}
}

// Has says whether an object of the kind can have what the steps lead to, and whether the document knows the kind.
func (d *Document) Has(group, version, kindName string, steps []transform.Step) (has, known bool) {
	name, known := d.kinds[kind{group, version, kindName}]
	if !known {
		return false, false
	}
	r := d.read()
	return r.leads(r.schema(name), steps), true
}

// reading is a document of which schemas are decoded, for one answer.
type reading struct {
	*Document
	decoded map[string]*schema
}

func (d *Document) read() *reading { return &reading{d, map[string]*schema{}} }

// schema is nil where the document has none, or one of another form, which leaves open what there is.
func (r *reading) schema(name string) *schema {
	s, known := r.decoded[name]
	if !known {
		if text := r.texts[name]; text != nil && json.Unmarshal(text, &s) != nil {
			s = nil
		}
		r.decoded[name] = s
	}
	return s
}

// leads says whether the steps lead to anything from a part of an object.
func (r *reading) leads(s *schema, steps []transform.Step) bool {
	if s == nil || len(steps) == 0 || r.open(s) {
		return true
	}
	for _, next := range r.follow(s, steps[0]) {
		if r.leads(next, steps[1:]) {
			return true
		}
	}
	for _, part := range r.parts(s) {
		if r.leads(part, steps) {
			return true
		}
	}
	return false
}

// open says whether the schema leaves open what there is.
func (r *reading) open(s *schema) bool {
	says := len(s.Properties) + len(s.Additional) + len(r.parts(s))
	return s.Open || s.Embedded || says == 0 && s.Items == nil && (s.Type == "" || s.Type == "object")
}

// parts are the schemas that a schema refers to for the same place.
func (r *reading) parts(s *schema) []*schema {
	var parts []*schema
	if s.Ref != "" {
		parts = append(parts, r.schema(target(s)))
	}
	return append(append(append(parts, s.All...), s.Any...), s.One...)
}

// target is the name of the schema that a schema refers to.
func target(s *schema) string { return strings.TrimPrefix(s.Ref, "#/components/schemas/") }

// follow is where one step leads; nil is where anything may be.
func (r *reading) follow(s *schema, step transform.Step) (next []*schema) {
	if step.Field == "" && s.Items != nil {
		next = append(next, s.Items)
	}
	if step.Any {
		for _, property := range s.Properties {
			next = append(next, property)
		}
	}
	if property, found := s.Properties[step.Field]; found {
		return append(next, property)
	}
	if element := step.Field == "" && !step.Any; element || len(s.Additional) == 0 || string(s.Additional) == "false" {
		return next
	}
	return append(next, s.additional())
}

// additional is what the values of a map are, nil where they may be anything.
func (s *schema) additional() *schema {
	var additional *schema
	if json.Unmarshal(s.Additional, &additional) != nil { // true
		return nil
	}
	return additional
}

// Text is what a document is read from, an io.Reader.
type Text interface {
	Read(into []byte) (int, error)
}

// mostOne is how much of one schema is kept (I6): etcd takes definitions of 1.5 MiB.
const mostOne = 4 << 20

// parts reads a JSON text value by value, of which none may be large (I6).
type parts struct {
	*json.Decoder // of what Read gives
	from          Text
	left          int // what may be read for one value
	skipped       json.RawMessage
}

// members stands before each member's value in turn, which each has to read.
func (p *parts) members(each func(name string) error) error {
	p.left = 2 * mostOne
	if open, err := p.Token(); err != nil || open != json.Delim('{') {
		return errors.Join(err, errors.New("it has something else in the place of an object"))
	}
	for p.More() {
		name, err := p.Token()
		if err == nil {
			err = each(name.(string)) // a key
		}
		if err != nil {
			return err
		}
	}
	_, err := p.Token()
	return err
}

// value reads one value, into memory that may be used again.
func (p *parts) value(into json.RawMessage) (json.RawMessage, error) {
	p.left = 2 * mostOne
	err := p.Decode(&into)
	return into, err
}

// skip reads over a value, and over an object by its members: a document's paths are as large as its schemas.
func (p *parts) skip() error {
	open, err := p.Token()
	if _, within := open.(json.Delim); err != nil || !within {
		return err
	}
	for p.More() {
		if open == json.Delim('{') {
			if _, err := p.Token(); err != nil {
				return err
			}
		}
		if p.skipped, err = p.value(p.skipped); err != nil {
			return err
		}
	}
	_, err = p.Token()
	return err
}

var errTooLarge = errors.New("a part of it is too large")

// Read ends what is read for one value.
func (p *parts) Read(b []byte) (int, error) {
	if p.left <= 0 {
		return 0, errTooLarge
	}
	n, err := p.from.Read(b[:min(len(b), p.left)])
	p.left -= n
	return n, err
}
