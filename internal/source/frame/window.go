package frame

import (
	"errors"
	"io"
)

const (
	// minWindow is what a quiet stream costs.
	minWindow = 1 << 10
	// recordWindow is a TLS record, the most that one Read gives; a stream that fills its window is worth as much.
	recordWindow = 16 << 10
	// keepWindow is the most that a stream holds on to once a large frame is through.
	keepWindow = 64 << 10
)

// window is the part of a stream that is in memory, between what was discarded and what is not yet read.
type window struct {
	src        io.Reader
	max        int // bytes, of a frame or an item
	buf        []byte
	start, end int   // buf[start:end] is held
	full       bool  // the last Read filled buf
	err        error // of the last Read, due when its bytes are used up
}

// held returns what is in memory; it is valid until the next fill.
func (w *window) held() []byte { return w.buf[w.start:w.end] }

// discard forgets the first n bytes held.
func (w *window) discard(n int) { w.start += n }

// check refuses a frame or an item of n bytes.
func (w *window) check(n int) error {
	if n > w.max {
		return ErrTooLarge
	}
	return nil
}

// more is fill for something that has begun.
func (w *window) more() error {
	err := w.fill()
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// fill reads more. It blocks until there is at least one byte more, and returns the reader's error when there is none.
func (w *window) fill() error {
	if w.err != nil {
		return w.err
	}
	if err := w.check(w.end - w.start); err != nil {
		return err
	}
	w.makeRoom()
	for {
		n, err := w.src.Read(w.buf[w.end:])
		w.end += n
		w.err = err
		w.full = w.end == len(w.buf)
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// makeRoom makes buf longer than end. It is called before the stream may block for hours: here a window that became
// large is given back. Up to keepWindow there is room for two frames, so that one is not moved for each Read; beyond,
// for one.
func (w *window) makeRoom() {
	live := w.end - w.start
	size := max(len(w.buf), minWindow)
	switch {
	case size > keepWindow && live <= keepWindow/2:
		size = keepWindow
	case w.full && (size < recordWindow || live == size || size < keepWindow && live > size/2):
		size *= 2
	case !w.full && live > 0:
		return
	}
	buf := w.buf
	if size != len(buf) {
		buf = make([]byte, size)
	}
	w.end = copy(buf, w.held())
	w.start = 0
	w.buf = buf
}

// ErrTooLarge is the error of a frame, or an item of a list, that is longer than is read of one.
var ErrTooLarge error = &SyntaxError{errors.New("longer than the limit")}

// SyntaxError says that what was read is no JSON, or not what a watch or a list consists of. It shows nothing of that,
// which may be the value of a Secret.
type SyntaxError struct{ Err error }

func (e *SyntaxError) Error() string { return "scan JSON: " + e.Err.Error() }

func (e *SyntaxError) Unwrap() error { return e.Err }

// IsUnreadable says whether the error is of what was read, and not of reading it.
func IsUnreadable(err error) bool {
	_, is := errors.AsType[*SyntaxError](err)
	return is
}
