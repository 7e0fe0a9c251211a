package config

import "reflect"

// conditional has keys whose defaults do not always apply.
type conditional interface{ applies(key string) bool }

// fillIn puts the default of each key where nothing is set.
func fillIn(v reflect.Value) {
	for _, f := range fieldsOf(v.Type()) {
		into := v.FieldByIndex(f.Index)
		for _, inner := range f.inside("", into) {
			fillIn(inner)
		}
		fallback := f.Tag.Get("default")
		if some, is := v.Addr().Interface().(conditional); fallback == "" || !into.IsZero() || is && !some.applies(f.name) {
			continue
		}
		if value, err := f.scalar().parse(fallback); err == nil { // a test parses all of them
			into.Set(reflect.ValueOf(value))
		}
	}
}

// values checks that values are among those that are allowed, and within their bounds.
func (c *checker) values(path string, v reflect.Value) {
	for _, f := range fieldsOf(v.Type()) {
		at, value := under(path, f.name), v.FieldByIndex(f.Index)
		for p, inner := range f.inside(at, value) {
			c.values(p, inner)
		}
		s := f.scalar()
		switch {
		case value.IsZero():
		case len(f.allowed) > 0 && s != nil:
			c.oneOf(at, value.String(), f.allowed)
		case len(f.allowed) > 0:
			for i := range value.Len() {
				c.oneOf(item(at, i), value.Index(i).String(), f.allowed)
			}
		case s != nil && s.within != nil && !s.within(value.Interface()):
			c.problem(at, "want %s, have %v", s.bound, value.Interface())
		}
	}
}

// show is what is set, by its keys.
func show(v reflect.Value) map[string]any {
	shown := map[string]any{}
	for _, f := range fieldsOf(v.Type()) {
		value := v.FieldByIndex(f.Index)
		var inner []map[string]any
		for _, one := range f.inside("", value) {
			inner = append(inner, show(one))
		}
		switch kind := value.Kind(); {
		case value.IsZero(), (kind == reflect.Slice || kind == reflect.Map) && value.Len() == 0:
		case inner == nil:
			shown[f.name] = value.Interface()
		case kind == reflect.Slice:
			shown[f.name] = inner
		case kind == reflect.Pointer || len(inner[0]) > 0:
			shown[f.name] = inner[0]
		}
	}
	return shown
}
