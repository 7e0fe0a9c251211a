package config

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// Schema is a JSON Schema.
type Schema = map[string]any

// field is a key of a mapping: a field of a struct with the tag key. Its other tags are default, as a user would write
// it, of, which values are allowed, and min and max. Everything that is known of the key comes from them, and from its
// sentence in sentences.yaml.
type field struct {
	reflect.StructField
	name    string
	owner   string // the type that has it, perhaps within another one
	allowed []string
}

// fieldsOf are the keys of a struct, in their order.
func fieldsOf(t reflect.Type) (all []field) {
	for _, f := range reflect.VisibleFields(t) {
		owner := t
		if outer := f.Index[:len(f.Index)-1]; len(outer) > 0 {
			owner = t.FieldByIndex(outer).Type
		}
		if name := f.Tag.Get("key"); name != "" {
			all = append(all, field{f, name, owner.Name(), strings.Fields(f.Tag.Get("of"))})
		}
	}
	return all
}

// allowedBy are the values of a key that has some.
func allowedBy[T any](key string) []string {
	for _, f := range fieldsOf(reflect.TypeFor[T]()) {
		if f.name == key {
			return f.allowed
		}
	}
	return nil
}

// below is the type of the mappings after the key, nil where they have no keys.
func (f *field) below() reflect.Type {
	t := f.Type
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || len(fieldsOf(t)) == 0 {
		return nil
	}
	return t
}

// inside are the mappings with keys of the field's value, with their paths.
func (f *field) inside(path string, v reflect.Value) iter.Seq2[string, reflect.Value] {
	return func(yield func(string, reflect.Value) bool) {
		switch {
		case f.below() == nil:
		case v.Kind() == reflect.Struct:
			yield(path, v)
		case v.Kind() == reflect.Slice:
			for i := 0; i < v.Len() && yield(item(path, i), v.Index(i)); i++ {
			}
		case !v.IsNil():
			yield(path, v.Elem())
		}
	}
}

// scalar is how one word is read.
type scalar struct {
	kind   string
	want   string // what a message asks for
	bound  string // the same, where the value is outside of its bounds
	types  any    // of JSON
	form   Schema // what else a JSON Schema says of it; nil is nothing
	plain  bool   // a string that must be written as one: 7 and true are mistakes
	parse  func(text string) (any, error)
	within func(value any) bool // false is outside of the bounds; nil is without
}

// scalar is nil where the field is more than a word.
func (f *field) scalar() *scalar {
	least, most := f.Tag.Get("min"), f.Tag.Get("max")
	switch reflect.Zero(f.Type).Interface().(type) {
	case string:
		return &scalar{kind: "string", want: "a string", types: "string", plain: true, parse: func(text string) (any, error) { return text, nil }}
	case Secret:
		return &scalar{kind: "secret", want: "a string", types: "string", plain: true, parse: func(text string) (any, error) { return Secret(text), nil }}
	case bool:
		return &scalar{kind: "boolean", want: "true or false", types: []string{"boolean", "string"}, parse: anyOf(parseBool)}
	case *bool:
		return &scalar{kind: "boolean", want: "true or false", types: []string{"boolean", "string"}, parse: func(text string) (any, error) {
			set, err := parseBool(text)
			return &set, err
		}}
	case int:
		return counts(least, most)
	case Size:
		return sizes(least)
	case Duration:
		return durations(least)
	}
	return nil
}

// anyOf makes any value of what is parsed.
func anyOf[T any](parse func(string) (T, error)) func(string) (any, error) {
	return func(text string) (any, error) { return parse(text) }
}

func counts(least, most string) *scalar {
	from, _ := strconv.Atoi(least) // no tag is 0
	to, err := strconv.Atoi(most)
	want := fmt.Sprintf("a whole number from %d to %d", from, to)
	if err != nil {
		to, want = math.MaxInt, fmt.Sprintf("a whole number, at least %d", from)
	}
	return &scalar{
		kind: "number", want: want, bound: want, types: []string{"integer", "string"}, parse: anyOf(strconv.Atoi),
		within: func(n any) bool { return n.(int) >= from && n.(int) <= to },
	}
}

func sizes(least string) *scalar {
	from, _ := parseSize(least) // no tag is 0
	return &scalar{
		kind: "size", want: "a size such as 64Mi", bound: fmt.Sprintf("a size of at least %s", from), types: []string{"integer", "string"},
		form:  Schema{"minimum": int64(from), "pattern": `^([0-9]+(Ki|Mi|Gi|Ti|k|M|G|T)?|.*\$\{.*)$`},
		parse: anyOf(parseSize), within: func(s any) bool { return s.(Size) >= from },
	}
}

// durations are lengths of time of at least least. 0 is none, and means that nothing is set.
func durations(least string) *scalar {
	from, err := parseDuration(least)
	want := "a length of time such as 10h or 1h30m"
	bound := fmt.Sprintf("a length of time of at least %s", from)
	if err != nil {
		bound = want
	}
	return &scalar{
		kind: "duration", want: want, bound: bound, types: []string{"string", "integer"},
		// A number without a unit is 0.
		form:  Schema{"minimum": 0, "maximum": 0, "pattern": `^(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))+|.*\$\{.*)$`},
		parse: anyOf(parseDuration), within: func(d any) bool { return d.(Duration) == 0 || d.(Duration) >= from },
	}
}

func parseBool(text string) (bool, error) {
	if text != "true" && text != "false" {
		return false, errors.New("neither true nor false")
	}
	return text == "true", nil
}
