package openapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/kubecdc/kubecdc/internal/transform"
)

// Document is what a server publishes for one version of one group.
type Document struct {
	schemas map[string]*schema
}

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
	Kinds       []kind             `json:"x-kubernetes-group-version-kind"`
}

type kind struct{ Group, Version, Kind string }

// Parse reads a document of OpenAPI v3.
func Parse(text []byte) (*Document, error) {
	var read struct {
		Components struct {
			Schemas map[string]*schema `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(text, &read); err != nil {
		return nil, fmt.Errorf("read the API server's schemas: %w", err)
	}
	return &Document{read.Components.Schemas}, nil
}

// Has says whether an object of the kind can have what the steps lead to, and whether the document knows the kind.
func (d *Document) Has(group, version, kindName string, steps []transform.Step) (has, known bool) {
	name := d.of(kind{group, version, kindName})
	if name == "" {
		return false, false
	}
	return d.leads(d.schemas[name], steps), true
}

// of is the name of the kind's schema, "" where there is none. Of several it is the first.
func (d *Document) of(k kind) (name string) {
	for at, s := range d.schemas {
		if s != nil && slices.Contains(s.Kinds, k) && (name == "" || at < name) {
			name = at
		}
	}
	return name
}

// leads says whether the steps lead to anything from a part of an object.
func (d *Document) leads(s *schema, steps []transform.Step) bool {
	if s == nil || len(steps) == 0 || d.open(s) {
		return true
	}
	for _, next := range d.follow(s, steps[0]) {
		if d.leads(next, steps[1:]) {
			return true
		}
	}
	for _, part := range d.parts(s) {
		if d.leads(part, steps) {
			return true
		}
	}
	return false
}

// open says whether the schema leaves open what there is.
func (d *Document) open(s *schema) bool {
	says := len(s.Properties) + len(s.Additional) + len(d.parts(s))
	return s.Open || s.Embedded || says == 0 && s.Items == nil && (s.Type == "" || s.Type == "object")
}

// parts are the schemas that a schema refers to for the same place.
func (d *Document) parts(s *schema) []*schema {
	var parts []*schema
	if s.Ref != "" {
		parts = append(parts, d.schemas[target(s)])
	}
	return append(append(append(parts, s.All...), s.Any...), s.One...)
}

// target is the name of the schema that a schema refers to.
func target(s *schema) string { return strings.TrimPrefix(s.Ref, "#/components/schemas/") }

// follow is where one step leads; nil is where anything may be.
func (d *Document) follow(s *schema, step transform.Step) (next []*schema) {
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
