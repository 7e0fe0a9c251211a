package frame

import "io"

const (
	// minWindow is what a quiet stream costs.
	minWindow = 1 << 10
	// recordWindow is a TLS record, the most that one Read gives; a stream that fills its window is worth as much.
	recordWindow = 16 << 10
	// keepWindow is the most that a stream holds on to once a large frame is through.
	keepWindow = 64 << 10
	// passedOver is how many times what may be held is stepped over where it is too large, in search of its end.
	passedOver = 64
	// maxEmptyReads is how often in a row a reader may return nothing at all.
	maxEmptyReads = 100
)

// window is the part of a stream that is in memory, between what was discarded and what is not yet read.
type window struct {
	src        io.Reader
	max        int // bytes, of a frame or an item
	buf        []byte
	start, end int   // buf[start:end] is held
	offset     int64 // of buf[start] in the stream
	full       bool  // the last Read filled buf
	err        error // of the last Read, due when its bytes are used up
}

// held returns what is in memory; it is valid until the next fill.
func (w *window) held() []byte { return w.buf[w.start:w.end] }

// discard forgets the first n bytes held.
func (w *window) discard(n int) {
	w.start += n
	w.offset += int64(n)
}

// check refuses a frame or an item of n bytes.
func (w *window) check(n int) error {
	if n > w.max {
		return ErrTooLarge
	}
	return nil
}

// farthest is the offset up to which the end of what begins here is looked for.
func (w *window) farthest() int64 { return w.offset + passedOver*int64(min(w.max, 1<<40)) }

// fill reads more. It blocks until there is at least one byte more, and returns the reader's error when there is none.
func (w *window) fill() error {
	if w.err != nil {
		return w.err
	}
	if err := w.check(w.end - w.start); err != nil {
		return err
	}
	w.makeRoom()
	for range maxEmptyReads {
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
	w.err = io.ErrNoProgress
	return w.err
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
