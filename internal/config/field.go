package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// field is a key of a mapping: a field of a struct with the tag key. Its other tags are default, as a user would write
// it, of, which values are allowed, min and max, need, what is wanted where it is missing, like, the syntax, place,
// that a sink writes there, with, another key that goes with it, and entries, that those of one resource have the same.
// Everything that is known of the key comes from them.
type field struct {
	reflect.StructField
	name    string
	allowed []string
}

// fieldsOf are the keys of a struct, in their order.
func fieldsOf(t reflect.Type) (all []field) {
	for _, f := range reflect.VisibleFields(t) {
		if name := f.Tag.Get("key"); name != "" {
			all = append(all, field{f, name, strings.Fields(f.Tag.Get("of"))})
		}
	}
	return all
}

// given is a key of a mapping with its value, and the mapping.
type given struct {
	field
	value, of reflect.Value
}

// each are the keys of a mapping, and after each those of the mappings in its value, by their paths.
func each(path string, of reflect.Value) iter.Seq2[string, given] {
	return func(yield func(string, given) bool) {
		for _, f := range fieldsOf(of.Type()) {
			at, value := under(path, f.name), of.FieldByIndex(f.Index)
			if !yield(at, given{f, value, of}) {
				return
			}
			for p, inner := range f.inside(at, value) {
				for p, one := range each(p, inner) {
					if !yield(p, one) {
						return
					}
				}
			}
		}
	}
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

// texts are the words of a value, with their paths: of one, a list of them, or one for each name.
func texts(path string, v reflect.Value) map[string]string {
	all := map[string]string{}
	switch value := v.Interface().(type) {
	case string:
		all[path] = value
	case []string:
		for i := range value {
			all[item(path, i)] = value[i]
		}
	case map[string]string:
		for name := range value {
			all[under(path, name)] = value[name]
		}
	}
	return all
}

// written is the value as JSON, a set in its order; nil is the default.
func (f *field) written(v reflect.Value) []byte {
	value := v.Interface()
	text, fallback := f.Tag.Get("default"), reflect.New(f.Type).Elem()
	if text != "" && set(fallback, text) == nil && reflect.DeepEqual(fallback.Interface(), value) {
		return nil
	}
	switch set := value.(type) {
	case []string:
		each := slices.Compact(slices.Sorted(slices.Values(set)))
		if f.name == "ops" && len(each) == len(strings.Fields(f.Tag.Get("of"))) {
			return nil // all of them, as without the key
		}
		value = each
	case Secret:
		value = set.Reveal()
	}
	if f.below() != nil {
		value = true // it is set
	}
	if text, err := json.Marshal(value); err == nil && !v.IsZero() && string(text) != "null" {
		return text
	}
	return nil
}

// scalar is how one word is read.
type scalar struct {
	want     string // what a message asks for
	bound    string // the same, where the value is outside of its bounds
	hidden   bool   // a message shows nothing of it
	plain    bool   // a string that must be written as one: 7 and true are mistakes
	from, to int64  // the bounds of a number
	none     bool   // 0 is one, too, and means that nothing is set
}

// scalar is nil where the field is more than a word.
func (f *field) scalar() *scalar {
	least, most := f.Tag.Get("min"), f.Tag.Get("max") // "" is none
	s := &scalar{to: math.MaxInt64}
	switch reflect.Zero(f.Type).Interface().(type) {
	case string, Secret:
		s.want, s.plain, s.hidden = "a string", true, f.Type == reflect.TypeFor[Secret]()
	case bool, *bool:
		s.want = "true or false"
	case int:
		s.from, _ = strconv.ParseInt(least, 10, 64)
		s.bound = fmt.Sprintf("a whole number, at least %d", s.from)
		if most != "" {
			s.to, _ = strconv.ParseInt(most, 10, 64)
			s.bound = fmt.Sprintf("a whole number from %d to %d", s.from, s.to)
		}
		s.want = s.bound
	case Size:
		from, _ := parseSize(least)
		s.from, s.want, s.bound = int64(from), "a size such as 64Mi", fmt.Sprintf("a size of at least %s", from)
	case Duration:
		from, err := parseDuration(least)
		s.from, s.none, s.want = int64(from), true, "a length of time such as 10h or 1h30m"
		if s.bound = s.want; err == nil {
			s.bound = fmt.Sprintf("a length of time of at least %s", from)
		}
	default:
		return nil
	}
	return s
}

// within says whether the value is not outside of its bounds.
func (s *scalar) within(value reflect.Value) bool {
	return !value.CanInt() || s.none && value.IsZero() || value.Int() >= s.from && value.Int() <= s.to
}

// set reads a word.
func set(into reflect.Value, text string) (err error) {
	switch to := into.Addr().Interface().(type) {
	case *string:
		*to = text
	case *Secret:
		*to = Secret(text)
	case *bool:
		*to, err = parseBool(text)
	case **bool:
		*to = new(bool)
		**to, err = parseBool(text)
	case *int:
		*to, err = strconv.Atoi(text)
	case *Size:
		*to, err = parseSize(text)
	case *Duration:
		*to, err = parseDuration(text)
	}
	return err
}

func parseBool(text string) (bool, error) {
	if text != "true" && text != "false" {
		return false, errors.New("neither true nor false")
	}
	return text == "true", nil
}

// Duration is a time.Duration that a file and the JSON form write as "10h".
type Duration time.Duration

// Size is a number of bytes.
type Size int64

type unit struct {
	suffix string
	bytes  int64
}

// units are the suffixes of a size as Kubernetes writes quantities, binary ones first and the largest first, which is
// the order in which String wants to try them.
func units() []unit {
	return []unit{
		{"Ti", 1 << 40}, {"Gi", 1 << 30}, {"Mi", 1 << 20}, {"Ki", 1 << 10},
		{"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"k", 1e3},
	}
}

// parseSize reads a whole number of bytes with or without a suffix: "64Mi", "10M", "4096".
func parseSize(text string) (Size, error) {
	number, factor := text, int64(1)
	for _, u := range units() {
		if rest, found := strings.CutSuffix(text, u.suffix); found {
			number, factor = rest, u.bytes
			break
		}
	}
	// ParseUint, unlike ParseInt, takes no sign.
	n, err := strconv.ParseUint(number, 10, 63)
	if err != nil || int64(n) > math.MaxInt64/factor {
		return 0, fmt.Errorf("parse size %q: want a whole number with one of Ki, Mi, Gi, Ti, k, M, G, T", text)
	}
	return Size(int64(n) * factor), nil
}

// String writes the size with the suffix that leaves the smallest whole number.
func (s Size) String() string {
	number, suffix := int64(s), ""
	for _, u := range units() {
		if n := int64(s) / u.bytes; int64(s)%u.bytes == 0 && n != 0 && n < number {
			number, suffix = n, u.suffix
		}
	}
	return strconv.FormatInt(number, 10) + suffix
}

// MarshalText writes the size as String does.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// parseDuration reads a length of time as Go writes it, "10h" or "1h30m". There is none before now.
func parseDuration(text string) (Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("parse duration %q: want a length of time such as 10h or 1h30m", text)
	}
	return Duration(d), nil
}

// String writes the duration without the parts that are zero at its end: "10h", not "10h0m0s".
func (d Duration) String() string {
	text := time.Duration(d).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// MarshalText writes the duration as String does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

const masked = "***"

// Secret is a string that no print, log line or encoding shows, not even by the wrong verb or as part of a larger
// value. Only Reveal gives it away, and the key of a map in JSON, where encoding/json asks a string for nothing.
type Secret string

// Reveal returns the secret itself, for the one call that logs in with it.
func (s Secret) Reveal() string { return string(s) }

// String hides the secret.
func (s Secret) String() string { return masked }

// Format hides the secret from every verb: fmt asks String for only some, and shows the value where a verb is wrong.
func (s Secret) Format(to fmt.State, _ rune) { _, _ = io.WriteString(to, masked) }

// MarshalText hides the secret from encodings, and so from slog.
func (s Secret) MarshalText() ([]byte, error) { return []byte(masked), nil }
