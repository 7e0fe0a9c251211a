package frame

import (
	"bytes"
	"encoding/json"
	"errors"
)

// member is one member of an object, found by encoding/json.
type member struct {
	key   string
	start int  // of the key's quote
	value span // ends where the member ends
}

// members lists the members of the object at place, which must be valid JSON.
func members(data []byte, place span) ([]member, error) {
	text := place.in(data)
	dec := json.NewDecoder(bytes.NewReader(text))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil, faultf(place.start, "no object where one belongs")
	}
	var all []member
	for dec.More() {
		from := int(dec.InputOffset())
		key, err := dec.Token()
		if err != nil {
			return nil, faultf(place.start+from, "want a key: %w", err)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, faultf(place.start+from, "want a value: %w", err)
		}
		from += bytes.IndexByte(text[from:], '"') // behind a comma and space
		end := place.start + int(dec.InputOffset())
		name, _ := key.(string)
		all = append(all, member{key: name, start: place.start + from, value: span{end - len(value), end}})
	}
	return all, nil
}

// valid checks that data is one JSON value.
func valid(data []byte) error {
	var all json.RawMessage
	return json.Unmarshal(data, &all)
}

// slowObject marks the object at place in valid JSON. Of a key that comes twice the last one counts, as in
// encoding/json, and every one that is to be cut is cut.
func (s *scanner) slowObject(data []byte, place span) error {
	m := &s.marks
	*m = marks{self: place, cuts: m.cuts[:0]}
	all, err := members(data, place)
	for _, one := range all {
		switch one.key {
		case "metadata":
			m.meta = metadata{self: one.value}
			err = errors.Join(err, s.slowMetadata(data))
		case "kind":
			m.kind = one.value
		case "apiVersion":
			m.apiVersion = one.value
		}
	}
	return err
}

func (s *scanner) slowMetadata(data []byte) error {
	m := &s.marks.meta
	if data[m.self.start] != '{' {
		return nil // for check to judge, if it is the last one
	}
	all, err := members(data, m.self)
	drop := s.dropper(all, "managedFields", s.opts.KeepManagedFields)
	for i, one := range all {
		switch one.key {
		case "name":
			m.name = one.value
		case "namespace":
			m.namespace = one.value
		case "uid":
			m.uid = one.value
		case "resourceVersion":
			m.version = one.value
		case "managedFields":
			m.managedFields = one.value
		case "annotations":
			m.annotations, m.eventsEnd = one.value, span{}
			err = errors.Join(err, s.slowAnnotations(data))
		}
		drop(i)
	}
	return err
}

func (s *scanner) slowAnnotations(data []byte) error {
	m := &s.marks.meta
	if data[m.annotations.start] != '{' {
		return nil
	}
	all, err := members(data, m.annotations)
	drop := s.dropper(all, lastApplied, s.opts.KeepLastApplied)
	for i, one := range all {
		if one.key == initialEventsEnd {
			m.eventsEnd = one.value
		}
		drop(i)
	}
	return err
}

// dropper returns what to call for each member in turn: it cuts those of the given key. A member is cut with what is
// between it and the member before, the comma with it; when none before it stays, with what is before the next.
func (s *scanner) dropper(all []member, key string, keep bool) func(i int) {
	stays := false // whether one of the members before does
	return func(i int) {
		one := all[i]
		switch {
		case keep || one.key != key:
			stays = true
		case stays:
			s.marks.cuts = append(s.marks.cuts, span{all[i-1].value.end, one.value.end})
		case i+1 < len(all):
			s.marks.cuts = append(s.marks.cuts, span{one.start, all[i+1].start})
		default:
			s.marks.cuts = append(s.marks.cuts, span{one.start, one.value.end})
		}
	}
}
