package deadletter

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// encode returns the file's two parts: the first line, and what comes after it.
func (l *Letter) encode() (line []byte, body [][]byte, err error) {
	l.Body = Body{Value: length(l.Value), Object: length(l.Object), Before: len(l.Before)}
	body = append(body, l.Value)
	if l.Object != nil {
		// Formats splice the object into the value as it came.
		if l.Body.ObjectAt = bytes.Index(l.Value, l.Object); l.Body.ObjectAt < 0 {
			l.Body.ObjectAt = len(l.Value)
			body = append(body, l.Object)
		}
	}
	if l.Before != nil {
		body = append(body, l.Before)
	}
	l.Body.Sum = sum(body...)
	line, err = json.Marshal(l)
	return append(line, '\n'), body, err
}

func length(b []byte) int {
	if b == nil {
		return -1
	}
	return len(b)
}

func sum(parts ...[]byte) string {
	hash := sha256.New()
	for _, part := range parts {
		hash.Write(part)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// readHead reads the first line, and leaves r after it.
func readHead(r *bufio.Reader) (*Letter, error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("its first line is incomplete: %w", noEOF(err))
	}
	l := new(Letter)
	if err := json.Unmarshal(line, l); err != nil {
		return nil, fmt.Errorf("its first line: %w", err)
	}
	return l, nil
}

// readBody reads value, object and the object before.
func (l *Letter) readBody(r io.Reader) error {
	rest, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	value, object, before := max(0, l.Body.Value), max(0, l.Body.Object), len(rest)-l.Body.Before
	if sum(rest) != l.Body.Sum || value > len(rest) || before < 0 || before > len(rest) || l.Body.ObjectAt < 0 || l.Body.ObjectAt > len(rest)-object {
		return errors.New("its content is not what was written")
	}
	if l.Body.Value >= 0 {
		l.Value = rest[:value:value]
	}
	if l.Body.Object >= 0 {
		l.Object = rest[l.Body.ObjectAt : l.Body.ObjectAt+object : l.Body.ObjectAt+object]
	}
	if l.Body.Before > 0 {
		l.Before = rest[before:]
	}
	return nil
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Document is the whole letter as one JSON value: value is the message's where that is JSON; where it is not, as with
// an id of a schema registry before it, valueBase64 is, and object and before are those of the record. A tombstone has
// none of them.
func (l *Letter) Document() ([]byte, error) {
	document := struct {
		*Letter
		Body        *Body           `json:"body,omitempty"` // of the file, which this is not
		Value       json.RawMessage `json:"value,omitempty"`
		ValueBase64 []byte          `json:"valueBase64,omitempty"`
		Object      json.RawMessage `json:"object,omitempty"`
		Before      json.RawMessage `json:"before,omitempty"`
	}{Letter: l}
	switch {
	case json.Valid(l.Value):
		document.Value = l.Value
	case l.Value != nil:
		document.ValueBase64, document.Object, document.Before = l.Value, valid(l.Object), valid(l.Before)
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(document)
	return out.Bytes(), err
}

// valid is the text where it is JSON, or else nil.
func valid(text []byte) json.RawMessage {
	if json.Valid(text) {
		return text
	}
	return nil
}
