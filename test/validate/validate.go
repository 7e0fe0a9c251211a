// Package validate holds messages against the JSON Schemas of what the exporter writes, with a validator that we did
// not write.
package validate

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/kubecdc/kubecdc/schema"
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

// The names of the schemas.
const (
	CloudEvent        = "cloudevent"         // an event in structured mode
	CloudEventHeaders = "cloudevent-headers" // the attributes of an event in binary mode, without their prefix, as text
	Debezium          = "debezium"           // a value in Debezium's envelope
	DebeziumKey       = "debezium-key"       // the key of such a message on Kafka
	Object            = "object"             // the value of format object, and the data of events in binary mode
	Patch             = "patch"              // in the place of an object: what has changed since a version
	SnapshotBegin     = "snapshot.begin"     // what a frame or a gap says of itself
	SnapshotEnd       = "snapshot.end"
	Gap               = "gap"
	Resolved          = "resolved"
	statusDocument    = "statusz" // the document at /statusz
)

// New compiles the schemas as readers have them. It asks no network.
func New() (*Validator, error) { return compiled(func(string, any) {}) }

// NewClosed compiles the schemas without further fields: what this very version writes.
func NewClosed() (*Validator, error) { return compiled(closeFields) }

// closeFields allows no field in an object of ours but those that are named. What has a title is such an object, but
// for an object of Kubernetes.
func closeFields(name string, node any) {
	switch node := node.(type) {
	case map[string]any:
		if node["title"] != nil && node["properties"] != nil && name != Object {
			node["additionalProperties"] = false
		}
		for key, below := range node {
			closeFields(key, below)
		}
	case []any:
		for _, below := range node {
			closeFields("", below)
		}
	}
}

func compiled(change func(name string, document any)) (*Validator, error) {
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	compiler.UseLoader(noLoader{})
	files, err := fs.Glob(schema.Files, "*.json")
	if err != nil {
		return nil, err
	}
	v := &Validator{schemas: map[string]*jsonschema.Schema{}}
	for _, file := range files {
		name := strings.TrimSuffix(file, ".json")
		text, err := schema.Files.ReadFile(file)
		if err != nil {
			return nil, err
		}
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("read schema %s: %w", name, err)
		}
		change(name, document)
		if err := compiler.AddResource("urn:kubecdc:schema:"+name, document); err != nil {
			return nil, fmt.Errorf("read schema %s: %w", name, err)
		}
		if v.schemas[name], err = compiler.Compile("urn:kubecdc:schema:" + name); err != nil {
			return nil, fmt.Errorf("compile schema %s: %w", name, err)
		}
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
var closed = sync.OnceValues(NewClosed)

// Status holds what /statusz says against its schema. Whatever test reads the document asks it.
func Status(text []byte) error {
	v, err := closed()
	if err != nil {
		return err
	}
	return v.Text(statusDocument, text)
}

// Message says what of the message is not as the schemas of its format want it.
func (v *Validator) Message(m Message) error {
	switch m.Format {
	case "cloudevents":
		if m.Value == nil {
			return m.tombstone()
		}
		return v.Text(CloudEvent, m.Value)
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
	case SnapshotBegin, SnapshotEnd, Gap, Resolved:
		return op
	}
	return Object
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
	if err := v.schemas[CloudEventHeaders].Validate(attributes); err != nil {
		return fmt.Errorf("headers %v: %w", m.Headers, err)
	}
	if len(m.Value) == 0 {
		return m.tombstone()
	}
	if attributes["base"] != nil {
		return v.Text(Patch, m.Value)
	}
	return v.Text(payload(m.Op), m.Value)
}

func (v *Validator) debezium(m Message) error {
	var err error
	if bytes.HasPrefix(m.Key, []byte("{")) {
		err = v.Text(DebeziumKey, m.Key)
	}
	if data, found := m.Headers["kubecdc-data"]; found {
		return errors.Join(err, v.Text(payload(m.Op), []byte(data)))
	}
	if len(m.Value) == 0 {
		return errors.Join(err, m.tombstone())
	}
	return errors.Join(err, v.Text(Debezium, m.Value))
}
