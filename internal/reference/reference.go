// Package reference makes docs/configuration.md from the types of the configuration: keys, types and defaults are read
// from them, and each key has a sentence here, without which nothing is made.
package reference

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/kubecdc/kubecdc/internal/config"
)

// Key is one key of a configuration.
type Key struct {
	Path    string // "sinks[].kafka.topic"
	Type    string
	Default string // "" is none, for which Text says what it means that the key is not there
	Allowed []string
	Text    string
	Section bool // has keys below it
}

// Keys are all keys in the order of the types, each section before its keys.
func Keys() ([]Key, error) {
	var keys []Key
	w := walker{texts: sentences(), allowed: allowed(), into: &keys}
	if err := w.structure("", sample()); err != nil {
		return nil, err
	}
	if path := w.unused(); path != "" {
		return nil, fmt.Errorf("describe the configuration: %s is no key: take its sentence out", path)
	}
	return keys, nil
}

// sample is a configuration with everything in it that has defaults.
func sample() reflect.Value {
	c := config.Config{
		Resources: []config.Resource{{}},
		Sinks: []config.Sink{{
			Kafka: &config.Kafka{TLS: &config.TLS{}, SASL: &config.SASL{OAuth: &config.OAuth{}}},
			NATS:  &config.NATS{},
			File:  &config.File{},
			Queue: config.Queue{Full: config.FullSpool}, // the spool has a default there
		}},
	}
	c.Default()
	c.Sinks[0].Queue.Full = config.FullPolicies()[0]
	c.Sinks[0].Name = "" // that of its kind
	return reflect.ValueOf(c)
}

type walker struct {
	texts   map[string]string
	allowed map[string][]string
	into    *[]Key
	used    []string
}

// structure adds the keys of a struct: first those with values, then its sections.
func (w *walker) structure(path string, value reflect.Value) error {
	var sections []func() error
	for i := range value.NumField() {
		name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
		if name == "" {
			continue // not of a file
		}
		p, field := strings.TrimPrefix(path+"."+name, "."), value.Field(i)
		if isUnread(p) {
			continue
		}
		below, isSection := inside(&p, field)
		if err := w.add(p, field, isSection); err != nil {
			return err
		}
		if isSection {
			sections = append(sections, func() error { return w.structure(p, below) })
		}
	}
	for _, section := range sections {
		if err := section(); err != nil {
			return err
		}
	}
	return nil
}

// isUnread says of a key that the type has for another place of it.
func isUnread(path string) bool { return path == "sinks[].kafka.tls.first" }

// inside is the struct that a field holds, alone or in a list, in which case the path gets its brackets.
func inside(path *string, field reflect.Value) (reflect.Value, bool) {
	switch {
	case field.Kind() == reflect.Pointer && field.Type().Elem().Kind() == reflect.Struct:
		return field.Elem(), true
	case field.Kind() == reflect.Slice && field.Type().Elem().Kind() == reflect.Struct:
		*path += "[]"
		return field.Index(0), true
	case field.Type() == reflect.TypeFor[config.Redaction]():
		return reflect.Value{}, false
	}
	return field, field.Kind() == reflect.Struct
}

func (w *walker) add(path string, field reflect.Value, isSection bool) error {
	text := w.texts[path]
	if text == "" {
		return fmt.Errorf("describe the configuration: %s has no sentence: give it one in internal/reference", path)
	}
	w.used = append(w.used, path)
	key := Key{Path: path, Allowed: w.allowed[path], Text: text, Section: isSection, Type: "mapping"}
	switch {
	case strings.HasSuffix(path, "[]"):
		key.Type = "list"
	case !isSection:
		key.Type, key.Default = typeOf(field.Type()), valueOf(field)
	}
	if key.Type == "" {
		return fmt.Errorf("describe the configuration: %s is a %s: teach internal/reference what that is", path, field.Type())
	}
	*w.into = append(*w.into, key)
	return nil
}

// unused is a sentence or a list of values that belongs to no key, "" where there is none.
func (w *walker) unused() string {
	for path := range w.texts {
		if !slices.Contains(w.used, path) {
			return path
		}
	}
	for path := range w.allowed {
		if !slices.Contains(w.used, path) {
			return path
		}
	}
	return ""
}

// typeOf says what a user writes.
func typeOf(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[config.Duration]():
		return "duration"
	case reflect.TypeFor[config.Size]():
		return "size"
	case reflect.TypeFor[config.Secret]():
		return "secret"
	case reflect.TypeFor[config.Redaction]():
		return "list of strings, or `none`"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return typeOf(t.Elem())
	case reflect.String:
		return "string"
	case reflect.Int:
		return "number"
	case reflect.Bool:
		return "boolean"
	case reflect.Slice:
		return "list of strings"
	case reflect.Map:
		return "mapping of strings"
	}
	return ""
}

// valueOf is a default as a user would write it.
func valueOf(field reflect.Value) string {
	if field.Kind() == reflect.Pointer {
		field = field.Elem()
	}
	if field.Kind() == reflect.Bool {
		return fmt.Sprint(field.Bool())
	}
	if field.IsZero() || field.Kind() == reflect.Slice || field.Kind() == reflect.Map {
		return ""
	}
	return fmt.Sprint(field.Interface())
}
