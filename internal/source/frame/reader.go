package frame

import (
	"bytes"
	"cmp"
	"errors"
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

// frame scans one line. Of one that cannot be read it tells the names that it has; the reason is an error where the
// type, or the object's name or resourceVersion, cannot be told.
func (s *scanner) frame(line []byte) (Frame, error) {
	kind, object, err := s.markFrame(line)
	t, noType := parseType(kind.in(line))
	switch {
	case err != nil:
	case noType != nil:
		err = noType
	case !object.found() || line[object.start] != '{':
		err = errors.New("the frame has no object")
	case t == Error:
		return Frame{Type: t, Status: bytes.Clone(object.in(line))}, nil
	}
	f := Frame{Type: t}
	if err == nil && t == Bookmark {
		f.Object, err = s.bookmark(line)
	} else if err == nil {
		f.Object, err = s.object(line, nil)
	}
	if err == nil {
		return f, nil
	}
	f.Object = s.unreadable(line, err)
	if noType != nil || t == Bookmark || t == Error || f.Object.Name == "" || f.Object.ResourceVersion == "" {
		return Frame{}, f.Object.Err
	}
	return f, nil
}

// markFrame marks the object of a frame, and says where that and the type are. Where the line ends as a frame does
// whose object is its last member, the object's end is known.
func (s *scanner) markFrame(line []byte) (kind, object span, err error) {
	s.marks = marks{cuts: s.marks.cuts[:0]}
	end := 0
	if bytes.HasSuffix(line, []byte("}}")) {
		end = len(line) - len("}")
	}
	c := cursor{data: line}
	c.enter()
	for c.member() {
		switch string(c.key) {
		case "type":
			c.value(&kind)
		case "object":
			start := c.pos
			if c.at('{') {
				s.mark(&c, end)
			} else {
				c.skip()
			}
			object = span{start, c.pos}
		default:
			c.skip()
		}
	}
	if c.unsure || c.pos != len(line) {
		err = broken(line, errors.New("the frame has no type"))
	}
	return kind, object, err
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
