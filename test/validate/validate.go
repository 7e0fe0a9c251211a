// Package validate holds messages against the JSON Schemas of what the exporter writes, with a validator that we did
// not write.
package validate

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/kubecdc/kubecdc/internal/schema"
)

// Message is one, as a consumer gets it.
type Message struct {
	Format  string // as the configuration names it
	NATS    bool   // attributes are headers in percent-encoding
	Op      string // of the header kubecdc-op
	Headers map[string]string
	Key     []byte // nil where there is none
	Value   []byte // nil is a tombstone
}

// Validator is the compiled schemas.
type Validator struct{ schemas map[string]*jsonschema.Schema }

// New compiles schemas, as package schema makes them. It asks no network.
func New(files map[string][]byte) (*Validator, error) {
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	compiler.UseLoader(noLoader{})
	v := &Validator{schemas: map[string]*jsonschema.Schema{}}
	for name, text := range files {
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("read schema %s: %w", name, err)
		}
		if err := compiler.AddResource("urn:kubecdc:schema:"+name, document); err != nil {
			return nil, fmt.Errorf("read schema %s: %w", name, err)
		}
	}
	for name := range files {
		one, err := compiler.Compile("urn:kubecdc:schema:" + name)
		if err != nil {
			return nil, fmt.Errorf("compile schema %s: %w", name, err)
		}
		v.schemas[name] = one
	}
	return v, nil
}

// noLoader has nothing beside what was added.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) { return nil, fmt.Errorf("%s is to be loaded", url) }

// Text holds a JSON text against the schema of the name.
func (v *Validator) Text(name string, text []byte) error {
	one := v.schemas[name]
	if one == nil {
		return fmt.Errorf("no schema %q", name)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("%s: read %q: %w", name, text, err)
	}
	if err := one.Validate(value); err != nil {
		return fmt.Errorf("%s: %s: %w", name, text, err)
	}
	return nil
}

// closed are the schemas of this very version.
var closed = sync.OnceValues(func() (*Validator, error) {
	files, err := schema.ClosedFiles()
	if err != nil {
		return nil, err
	}
	return New(files)
})

// Status holds what /statusz says against its schema. Whatever test reads the document asks it.
func Status(text []byte) error {
	v, err := closed()
	if err != nil {
		return err
	}
	return v.Text(schema.Status, text)
}

// Message says what of the message is not as the schemas of its format want it.
func (v *Validator) Message(m Message) error {
	switch m.Format {
	case "cloudevents":
		if m.Value == nil {
			return m.tombstone()
		}
		return v.Text(schema.CloudEvent, m.Value)
	case "cloudevents-binary":
		return v.binary(m)
	case "debezium":
		return v.debezium(m)
	case "object":
		if len(m.Value) == 0 {
			return m.tombstone()
		}
		return v.Text(payload(m.Op), m.Value)
	}
	return fmt.Errorf("no format %q", m.Format)
}

// tombstone is allowed for deletes only.
func (m Message) tombstone() error {
	if m.Op != "deleted" {
		return fmt.Errorf("%s on %q without a value", m.Op, m.Key)
	}
	return nil
}

// payload is the schema of what a record of the operation carries.
func payload(op string) string {
	switch op {
	case schema.SnapshotBegin, schema.SnapshotEnd, schema.Gap:
		return op
	}
	return schema.Object
}

func (v *Validator) binary(m Message) error {
	if m.Value == nil {
		return m.tombstone()
	}
	prefix, attributes := "ce_", map[string]any{}
	if m.NATS {
		prefix = "ce-"
	}
	for name, value := range m.Headers {
		if m.NATS {
			var err error
			if value, err = url.PathUnescape(value); err != nil {
				return fmt.Errorf("header %s: %w", name, err)
			}
		}
		if attribute, found := strings.CutPrefix(name, prefix); found {
			attributes[attribute] = value
		} else if name == "content-type" {
			attributes["datacontenttype"] = value
		}
	}
	if err := v.schemas[schema.CloudEventHeaders].Validate(attributes); err != nil {
		return fmt.Errorf("headers %v: %w", m.Headers, err)
	}
	if len(m.Value) == 0 {
		return m.tombstone()
	}
	if attributes["base"] != nil {
		return v.Text(schema.Patch, m.Value)
	}
	return v.Text(payload(m.Op), m.Value)
}

func (v *Validator) debezium(m Message) error {
	var err error
	if bytes.HasPrefix(m.Key, []byte("{")) {
		err = v.Text(schema.DebeziumKey, m.Key)
	}
	if data, found := m.Headers["kubecdc-data"]; found {
		return errors.Join(err, v.Text(payload(m.Op), []byte(data)))
	}
	if len(m.Value) == 0 {
		return errors.Join(err, m.tombstone())
	}
	return errors.Join(err, v.Text(schema.Debezium, m.Value))
}
