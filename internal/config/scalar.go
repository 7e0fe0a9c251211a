package config

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// scalar is how one word is read into a T.
type scalar[T any] struct {
	kind  string
	want  string // what a message asks for
	bound string // the same, where the value is outside of its bounds
	types []string
	form  Schema // what else a JSON Schema says of it; nil is nothing
	plain bool   // a string that must be written as one: 7 and true are mistakes
	parse func(text string) (T, error)
	check func(T) bool // false is outside of the bounds; nil is without
}

// into is the value of a key that holds one word.
func (s scalar[T]) into(target *T) value {
	schema := Schema{"type": s.schemaType()}
	maps.Copy(schema, s.form)
	return value{
		kind:   s.kind,
		schema: schema,
		read:   func(d *decoder, path string, n *yaml.Node) { s.read(d, path, n, target) },
		check: func(k *checker, path string) {
			if s.check == nil || isZero(target) {
				return
			}
			if !s.check(*target) {
				k.problem(path, "want %s, have %v", s.bound, *target)
			}
		},
		show: func() any {
			if isZero(target) {
				return nil
			}
			return *target
		},
	}
}

func (s scalar[T]) schemaType() any {
	if len(s.types) == 1 {
		return s.types[0]
	}
	return s.types
}

func isZero[T any](target *T) bool { return reflect.ValueOf(target).Elem().IsZero() }

func (s scalar[T]) read(d *decoder, path string, n *yaml.Node, target *T) {
	var text string
	if !d.word(path, n, s.want, s.plain, &text) {
		return
	}
	switch value, err := s.parse(text); {
	case err != nil:
		d.mismatch(path, n, s.want)
	case s.check != nil && !s.check(value):
		d.mismatch(path, n, s.bound)
	default:
		*target = value
	}
}

// or gives the value a default, as a user would write it.
func or[T any](target *T, s scalar[T], fallback string) value {
	return orWhen(target, s, fallback, true)
}

// orWhen gives the value a default that it has only where applies.
func orWhen[T any](target *T, s scalar[T], fallback string, applies bool) value {
	v := s.into(target)
	v.fallback = fallback
	v.fillIn = func() {
		if !applies || !isZero(target) {
			return
		}
		if value, err := s.parse(fallback); err == nil { // a test parses all of them
			*target = value
		}
	}
	return v
}

func texts() scalar[string] {
	return scalar[string]{kind: "string", want: "a string", types: []string{"string"}, plain: true,
		parse: func(text string) (string, error) { return text, nil }}
}

// text is a string.
func text(target *string) value { return texts().into(target) }

// textOr is a string with a default.
func textOr(target *string, fallback string) value { return or(target, texts(), fallback) }

// word is one of the allowed strings; "" is none of them, and means that nothing is set.
func word(target *string, allowed []string) value { return text(target).oneOf(target, allowed) }

// firstOf is one of the allowed strings, of which the first is the default.
func firstOf(target *string, allowed []string) value {
	return textOr(target, allowed[0]).oneOf(target, allowed)
}

// oneOf restricts the value. It is checked when file and flags are in, since a flag may have replaced it.
func (v value) oneOf(target *string, allowed []string) value {
	v.allowed, v.schema = allowed, restricted(allowed)
	v.check = func(k *checker, path string) {
		if *target != "" {
			k.oneOf(path, *target, allowed)
		}
	}
	return v
}

// restricted is a string of the allowed ones. A variable may stand for any of them.
func restricted(allowed []string) Schema {
	return Schema{"type": "string", "pattern": "^(" + strings.Join(allowed, "|") + `|.*\$\{.*)$`}
}

// secret reads as text does, but shows nothing of what it does not like.
func secret(target *Secret) value {
	s := scalar[Secret]{kind: "secret", want: "a string", types: []string{"string"}, plain: true,
		parse: func(text string) (Secret, error) { return Secret(text), nil }}
	v := s.into(target)
	read := v.read
	v.read = func(d *decoder, path string, n *yaml.Node) {
		if n != nil && !isString(n) {
			d.problem(path, "want a string; put it in quotes")
			return
		}
		read(d, path, n)
	}
	return v
}

func sizes(least Size) scalar[Size] {
	return scalar[Size]{
		kind: "size", want: "a size such as 64Mi", bound: fmt.Sprintf("a size of at least %s", least),
		types: []string{"integer", "string"}, parse: parseSize,
		form:  Schema{"minimum": int64(least), "pattern": `^([0-9]+(Ki|Mi|Gi|Ti|k|M|G|T)?|.*\$\{.*)$`},
		check: func(s Size) bool { return s >= least },
	}
}

const unlimited = math.MaxInt

func counts(least, most int) scalar[int] {
	want := fmt.Sprintf("a whole number from %d to %d", least, most)
	if most == unlimited {
		want = fmt.Sprintf("a whole number, at least %d", least)
	}
	return scalar[int]{
		kind: "number", want: want, bound: want, types: []string{"integer", "string"}, parse: strconv.Atoi,
		check: func(n int) bool { return n >= least && n <= most },
	}
}

// durations are lengths of time of at least least. 0 is none, and means that nothing is set.
func durations(least Duration) scalar[Duration] {
	want := "a length of time such as 10h or 1h30m"
	bound := want
	if least > 0 {
		bound = fmt.Sprintf("a length of time of at least %s", least)
	}
	return scalar[Duration]{
		kind: "duration", want: want, bound: bound, types: []string{"string", "integer"}, parse: parseDuration,
		// A number without a unit is 0.
		form:  Schema{"minimum": 0, "maximum": 0, "pattern": `^(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))+|.*\$\{.*)$`},
		check: func(d Duration) bool { return d == 0 || d >= max(least, 0) },
	}
}

func booleans() scalar[bool] {
	return scalar[bool]{kind: "boolean", want: "true or false", types: []string{"boolean", "string"}, parse: parseBool}
}

// flag is a boolean that is false where it is not set.
func flag(target *bool) value {
	v := booleans().into(target)
	v.fallback = "false"
	return v
}

// choice is a boolean that is true where it is not set.
func choice(target **bool) value {
	s := scalar[*bool]{kind: "boolean", want: "true or false", types: []string{"boolean", "string"},
		parse: func(text string) (*bool, error) {
			set, err := parseBool(text)
			return &set, err
		}}
	return or(target, s, "true")
}

func parseBool(text string) (bool, error) {
	if text != "true" && text != "false" {
		return false, errors.New("neither true nor false")
	}
	return text == "true", nil
}
