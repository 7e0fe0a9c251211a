package frame

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/kubecdc/kubecdc/internal/scan/slab"
)

// Reader splits a watch into its frames, one on a line, and scans each. It is for one goroutine.
type Reader struct {
	window  window
	scanner scanner
	err     error // the end, which stays
}

// NewReader reads the body of a watch from r.
func NewReader(r io.Reader, opts Options) *Reader {
	return &Reader{window: window{src: r, max: cmp.Or(opts.maxBytes, defaultMaxBytes)}, scanner: scanner{opts: opts}}
}

// Next blocks until there is another frame. At the end of the watch it returns io.EOF; when the watch ends inside a
// line, io.ErrUnexpectedEOF, and the line is dropped. These stay, as does ErrTooLarge. A frame that cannot be read has
// Object.Err set; where not even its type and its object's name can be told, the error is a *SyntaxError, and the next
// call goes on after it.
func (r *Reader) Next() (Frame, error) {
	if r.err != nil {
		return Frame{}, r.err
	}
	f, err := r.next()
	if err == ErrTooLarge || err != nil && !IsUnreadable(err) {
		r.err = err
	}
	return f, err
}

// Keep copies the JSON of an object, for as long as somebody needs it.
func (r *Reader) Keep(object []byte) []byte {
	return append(r.scanner.slab.Take(len(object))[:0], object...)
}

func (r *Reader) next() (Frame, error) {
	for {
		n, err := r.line()
		if err != nil {
			return Frame{}, err
		}
		line := bytes.TrimRight(r.window.held()[:n], " \t\r\n")
		if len(line) == 0 {
			r.window.discard(n)
			continue
		}
		f, err := r.scanner.frame(line)
		if err != nil {
			f, err = r.unreadable(line, &SyntaxError{err})
		}
		r.window.discard(n)
		return f, err
	}
}

// line waits until a whole line is held, and returns its length.
func (r *Reader) line() (int, error) {
	for seen := 0; ; {
		held := r.window.held()
		if n := bytes.IndexByte(held[seen:], '\n'); n >= 0 {
			return seen + n + 1, r.window.check(seen + n)
		}
		seen = len(held)
		// held is no longer used: fill may give its memory back and then block.
		if err := r.window.fill(); err == io.EOF && len(bytes.TrimSpace(r.window.held())) > 0 {
			return 0, io.ErrUnexpectedEOF
		} else if err != nil {
			return 0, err
		}
	}
}

// frame scans one line.
func (s *scanner) frame(line []byte) (Frame, error) {
	t := s.fastFrame(line)
	if t == "" {
		s.slow++
		var err error
		if t, err = s.slowFrame(line); err != nil {
			return Frame{}, err
		}
	}
	if t == Error {
		return Frame{Type: t, Status: bytes.Clone(s.marks.self.in(line))}, nil
	}
	if t == Bookmark {
		o, err := s.bookmark(line)
		return Frame{Type: t, Object: o}, err
	}
	o, err := s.object(line, nil)
	return Frame{Type: t, Object: o}, err
}

// bookmark copies the object into memory of its own: a quiet stream gets nothing but bookmarks, whose version stays,
// and would keep a slab for that.
func (s *scanner) bookmark(line []byte) (Object, error) {
	objects := s.slab
	s.slab = slab.Of(make([]byte, 2*len(line))) // the names are in it twice
	o, err := s.object(line, nil)
	s.slab = objects
	return o, err
}

// fastFrame marks the object of a frame as API servers write it; it returns "" for every other, and for errors.
func (s *scanner) fastFrame(line []byte) Type {
	const head, middle = `{"type":"`, `","object":`
	if len(line) < len(head) || string(line[:len(head)]) != head {
		return ""
	}
	end := len(head) + max(0, bytes.IndexByte(line[len(head):], '"'))
	t := parseType(line[len(head):end])
	if t == "" || t == Error || !bytes.HasPrefix(line[end:], []byte(middle)) {
		return ""
	}
	known := 0
	if bytes.HasSuffix(line, []byte("}}")) {
		known = len(line) - len("}")
	}
	if !s.mark(cursor{data: line, pos: end + len(middle)}, known) || string(line[s.marks.self.end:]) != "}" {
		return ""
	}
	return t
}

// slowFrame marks the object of any frame.
func (s *scanner) slowFrame(line []byte) (Type, error) {
	if err := valid(line); err != nil {
		return "", err
	}
	kind, object := parts(line)
	var name string
	if err := json.Unmarshal(kind.in(line), &name); err != nil {
		return "", fmt.Errorf("the frame has no type: %w", err)
	}
	t := parseType(name)
	if t == "" {
		return "", fmt.Errorf("the frame has an unknown type %.32q", name)
	}
	if !object.found() || line[object.start] != '{' {
		return "", errors.New("the frame has no object")
	}
	s.mark(cursor{data: line, pos: object.start, any: true}, 0)
	return t, nil
}

// parts are where the type and the object of any frame are.
func parts(line []byte) (kind, object span) {
	c := cursor{data: line, any: true}
	c.enter()
	for c.member() {
		switch string(c.key) {
		case "type":
			c.value(&kind)
		case "object":
			c.value(&object)
		default:
			c.skip()
		}
	}
	return kind, object
}

// unreadable is what can be told of a line. It returns the reason as an error where the type, or the object's name or
// resourceVersion, cannot be told.
func (r *Reader) unreadable(line []byte, why error) (Frame, error) {
	kind, object := parts(line)
	f := Frame{Type: parseType(text(kind.in(line))), Object: r.scanner.unreadable(cursor{data: line, pos: object.start}, why)}
	if f.Type == "" || f.Type == Bookmark || f.Type == Error || f.Object.Name == "" || f.Object.ResourceVersion == "" {
		return Frame{}, why
	}
	return f, nil
}
