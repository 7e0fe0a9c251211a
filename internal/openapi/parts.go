package openapi

import (
	"encoding/json"
	"errors"
)

// Text is what a document is read from, an io.Reader.
type Text interface {
	Read(into []byte) (int, error)
}

// mostOne is how much of one schema is kept (I6): etcd takes definitions of 1.5 MiB.
const mostOne = 4 << 20

// parts reads a JSON text value by value, of which none may be large (I6).
type parts struct {
	*json.Decoder
	from    *meter
	skipped json.RawMessage
}

func newParts(from Text) *parts {
	m := &meter{Text: from}
	return &parts{Decoder: json.NewDecoder(m), from: m}
}

// members stands before each member's value in turn, which each has to read.
func (p *parts) members(each func(name string) error) error {
	p.from.left = 2 * mostOne
	if open, err := p.Token(); err != nil || open != json.Delim('{') {
		return errors.Join(err, errors.New("it has something else in the place of an object"))
	}
	for p.More() {
		name, err := p.Token()
		if err == nil {
			err = each(name.(string)) // a key
		}
		if err != nil {
			return err
		}
	}
	_, err := p.Token()
	return err
}

// value reads one value, into memory that may be used again.
func (p *parts) value(into json.RawMessage) (json.RawMessage, error) {
	p.from.left = 2 * mostOne
	err := p.Decode(&into)
	return into, err
}

// skip reads over a value, and over an object by its members: a document's paths are as large as its schemas.
func (p *parts) skip() error {
	open, err := p.Token()
	if _, within := open.(json.Delim); err != nil || !within {
		return err
	}
	for p.More() {
		if open == json.Delim('{') {
			if _, err := p.Token(); err != nil {
				return err
			}
		}
		if p.skipped, err = p.value(p.skipped); err != nil {
			return err
		}
	}
	_, err = p.Token()
	return err
}

// meter ends what is read for one value.
type meter struct {
	Text
	left int
}

var errTooLarge = errors.New("a part of it is too large")

func (m *meter) Read(b []byte) (int, error) {
	if m.left <= 0 {
		return 0, errTooLarge
	}
	n, err := m.Text.Read(b[:min(len(b), m.left)])
	m.left -= n
	return n, err
}
