package typed

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// closedNode is any part of a closed schema but true.
type closedNode struct {
	Title       string                     `json:"title"`
	Type        json.RawMessage            `json:"type"`
	Format      string                     `json:"format"`
	Ref         string                     `json:"$ref"`
	Properties  map[string]json.RawMessage `json:"properties"`
	Additional  json.RawMessage            `json:"additionalProperties"`
	Items       json.RawMessage            `json:"items"`
	OneOf       []json.RawMessage          `json:"oneOf"`
	Definitions map[string]json.RawMessage `json:"definitions"`
}

// parseClosed is the type whose closed schema the text is. It returns ErrOther for any other schema.
func parseClosed(text []byte) (*Type, error) {
	p := closedParser{parser: parser{records: map[string]*Type{}}}
	var root closedNode
	if json.Unmarshal(text, &root) != nil {
		p.refuse("it is no JSON Schema")
		return nil, p.err
	}
	p.definitions = root.Definitions
	t := p.record(&root, root.Title, 0)
	if p.err == nil && (t.Kind != Record || !t.Rest) {
		p.refuse("it is not an object with %s", RestName)
	}
	if p.err != nil {
		return nil, p.err
	}
	t.Rest = false // the outermost has one in any case
	return t, nil
}

// closedParser reads closed schemas.
type closedParser struct {
	parser
	definitions map[string]json.RawMessage
}

func (p *closedParser) value(text []byte, depth int) *Type {
	if string(text) == "true" {
		return Of(Text)
	}
	var n closedNode
	if depth > 3*MaxDepth || json.Unmarshal(text, &n) != nil {
		return p.refuse("it has a type such as %.40s", text)
	}
	if n.Ref != "" {
		return p.refer(n.Ref, depth)
	}
	switch types := typesOf(n.Type); {
	case types == "array" && n.Items != nil:
		return p.elements(List, n.Items, depth)
	case types == "object" && n.Properties == nil && n.Additional != nil:
		return p.elements(Map, n.Additional, depth)
	case types == "string" && n.Format == "date-time":
		return Of(Time)
	case n.Format == "":
		for kind, names := range schemaTypes() {
			if types == strings.Join(names, " ") {
				return Of(kind)
			}
		}
	}
	return p.refuse("it has a type such as %.40s", text)
}

// typesOf are the names of the types, with blanks between them.
func typesOf(text []byte) string {
	var several []string
	if json.Unmarshal(text, &several) == nil {
		return strings.Join(several, " ")
	}
	one := ""
	_ = json.Unmarshal(text, &one) // "" of what is neither
	return one
}

// elements is a list or a map, whose elements may be null where they are one of two.
func (p *closedParser) elements(kind Kind, text []byte, depth int) *Type {
	t := &Type{Kind: kind}
	var n closedNode
	if json.Unmarshal(text, &n) == nil && len(n.OneOf) == 2 {
		text, t.Nullable = n.OneOf[1], true
	}
	t.Elem = p.value(text, depth+1)
	return t
}

func (p *closedParser) refer(ref string, depth int) *Type {
	name, inner := strings.CutPrefix(ref, "#/definitions/")
	made, begun := p.records[name]
	switch text := p.definitions[name]; {
	case made != nil:
		return made
	case begun || !inner || text == nil:
		return p.refuse("it refers to %.40q", ref)
	default:
		var n closedNode
		if json.Unmarshal(text, &n) != nil {
			return p.refuse("it has a type such as %.40s", text)
		}
		p.records[name] = nil
		p.records[name] = p.record(&n, name, depth)
		return p.records[name]
	}
}

func (p *closedParser) record(n *closedNode, name string, depth int) *Type {
	if typesOf(n.Type) != "object" || string(n.Additional) != "false" || name == "" {
		return p.refuse("%.40q is not an object that has its properties and nothing else", name)
	}
	if p.fields += len(n.Properties); p.fields > 2*MaxFields {
		return p.refuse("it has too many fields")
	}
	var fields []Field
	for _, property := range slices.Sorted(maps.Keys(n.Properties)) {
		if property != RestName {
			fields = append(fields, Field{JSON: property, Type: p.value(n.Properties[property], depth+1)})
		}
	}
	t := NewRecord(name, fields)
	_, t.Rest = n.Properties[RestName]
	return t
}
