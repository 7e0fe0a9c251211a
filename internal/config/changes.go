package config

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Recorded is the configuration as a state remembers it: its JSON form, with a hash in place of the key of hashes, so
// that another key is seen.
func (c *Config) Recorded() ([]byte, error) {
	shown := show(reflect.ValueOf(c).Elem())
	if c.RedactKey != "" {
		mac := hmac.New(sha256.New, []byte(c.RedactKey.Reveal()))
		shown["redactKey"] = hex.EncodeToString(mac.Sum([]byte("redactKey"))[:16])
	}
	return json.Marshal(shown)
}

// effects are what consumers see of another value of a key, by the key's tag effect. A key without one concerns no
// consumer, or the positions of the sinks tell what begins and what ends.
func effects() map[string]string {
	return map[string]string{
		"new":    "it holds for new records only",
		"next":   "it holds from the next change of each object; exporter snapshot sends all objects by it",
		"shape":  "it holds from the next change of each object, and for records on disk; exporter snapshot sends all objects by it",
		"second": "it holds from the second change of each object, or after exporter snapshot",
		"whole":  "each object is sent whole first, then as configured",
		"hashes": "hashes differ from those before, from the next update of each object",
		"place":  "a gap of reason lost and a full snapshot follow in the new place; the old one stays as it is",
		"broker": "if it leads to another broker, rename the sink: what was sent is not there",
		"fence":  "an exporter with the old one is not fenced: stop it first",
	}
}

// Since says in one line each what consumers see of the keys that differ from a recorded configuration, nil where that
// is not known, and whether anything differs.
func (c *Config) Since(recorded []byte) (lines []string, differs bool) {
	if recorded == nil {
		return nil, true
	}
	now, err := c.Recorded()
	var was, is map[string]any
	if err := cmp.Or(err, json.Unmarshal(recorded, &was), json.Unmarshal(now, &is)); err != nil {
		return []string{fmt.Sprintf("the configuration of the last start cannot be compared: %v", err)}, true
	}
	return changed("", reflect.TypeFor[Config](), was, is), !reflect.DeepEqual(was, is)
}

// changed has a line for each key of the mappings that differs, and has an effect.
func changed(path string, of reflect.Type, was, is map[string]any) (lines []string) {
	for _, f := range fieldsOf(of) {
		before, now := f.in(was), f.in(is)
		at := under(path, f.name)
		switch effect, inner := effects()[f.Tag.Get("effect")], f.below(); {
		case effect != "" && !reflect.DeepEqual(before, now):
			lines = append(lines, fmt.Sprintf("%s was %s and is %s: %s", at, written(before), written(now), effect))
		case inner == nil:
		case f.Type.Kind() == reflect.Slice:
			lines = append(lines, itemsChanged(f.name, inner, before, now)...)
		default:
			had, _ := before.(map[string]any)
			has, _ := now.(map[string]any)
			lines = append(lines, changed(at, inner, had, has)...)
		}
	}
	return lines
}

// itemsChanged compares the items that both lists have: those of one name in their order.
func itemsChanged(list string, of reflect.Type, was, is any) (lines []string) {
	key := "name"
	if list == "resources" {
		key = "resource"
	}
	before, _ := was.([]any)
	now, _ := is.([]any)
	left := slices.Clone(before)
	for _, one := range now {
		has, _ := one.(map[string]any)
		at := slices.IndexFunc(left, func(item any) bool {
			had, _ := item.(map[string]any)
			return had[key] == has[key]
		})
		if at < 0 {
			continue
		}
		had, _ := left[at].(map[string]any)
		left = slices.Delete(left, at, at+1)
		for _, line := range changed("", of, had, has) {
			lines = append(lines, fmt.Sprintf("%s %v: %s", strings.TrimSuffix(list, "s"), has[key], line))
		}
	}
	return lines
}

// in is the key's value in the mapping, or its default.
func (f *field) in(mapping map[string]any) (value any) {
	value, is := mapping[f.name]
	fallback, s := f.Tag.Get("default"), f.scalar()
	if is || fallback == "" || s == nil {
		return value
	}
	parsed, err := s.parse(fallback)
	text, marshalErr := json.Marshal(parsed)
	if err := cmp.Or(err, marshalErr, json.Unmarshal(text, &value)); err != nil {
		return nil // a test parses all defaults
	}
	return value
}

// written is the value as a line shows it.
func written(value any) string {
	if value == nil {
		return "not set"
	}
	text, err := json.Marshal(value)
	if err != nil {
		return "?"
	}
	return shorten(string(text))
}
