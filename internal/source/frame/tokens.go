package frame

import (
	"errors"
	"io"

	"github.com/kubecdc/kubecdc/internal/scan"
)

// tokens reads JSON piece by piece from a stream, with whatever space is between the pieces.
type tokens struct{ window }

// wrong is the error for what comes next.
func (t *tokens) wrong(what string) error {
	return syntaxError(t.held(), t.offset, 0, errors.New(what))
}

// more waits for more of something that has begun.
func (t *tokens) more() error {
	err := t.fill()
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// end returns nil if there is nothing but space up to the end of the stream.
func (t *tokens) end() error {
	for {
		if t.skipSpace(); len(t.held()) > 0 {
			return t.wrong("there is more after the end")
		}
		if err := t.fill(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func (t *tokens) skipSpace() {
	held := t.held()
	n := 0
	for n < len(held) && isSpace(held[n]) {
		n++
	}
	t.discard(n)
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// peek returns the byte that the next piece begins with, which is held.
func (t *tokens) peek() (byte, error) {
	for {
		if t.skipSpace(); len(t.held()) > 0 {
			return t.held()[0], nil
		}
		if err := t.more(); err != nil {
			return 0, err
		}
	}
}

// expect steps over one byte.
func (t *tokens) expect(want byte) error {
	c, err := t.peek()
	if err != nil {
		return err
	}
	if c != want {
		return t.wrong("want " + string(want))
	}
	t.discard(1)
	return nil
}

// each calls element, which steps over one, for all that is between the brackets and commas.
func (t *tokens) each(opening, closing byte, element func() error) error {
	if err := t.expect(opening); err != nil {
		return err
	}
	for first := true; ; first = false {
		c, err := t.peek()
		if err != nil {
			return err
		}
		if c == closing {
			return t.expect(closing)
		}
		if !first {
			if err := t.expect(','); err != nil {
				return err
			}
		}
		if err := element(); err != nil {
			return err
		}
	}
}

// value returns the next value whole. It stays held, for discard.
func (t *tokens) value() ([]byte, error) {
	c, err := t.peek()
	if err != nil {
		return nil, err
	}
	if c == '{' || c == '[' {
		return t.nested()
	}
	return t.flat()
}

// nested looks at each byte once, however many pieces the value comes in.
func (t *tokens) nested() ([]byte, error) {
	var b scan.Balance
	b.Enter()
	for seen := 1; ; {
		held := t.held()
		if n := b.Skip(held[seen:]); n >= 0 {
			return held[:seen+n], t.check(seen + n)
		}
		seen = len(held)
		if err := t.more(); err != nil {
			return nil, err
		}
	}
}

// passOver steps over a value in brackets and holds a piece of it at a time.
func (t *tokens) passOver() error {
	var b scan.Balance
	b.Enter()
	t.discard(1)
	for limit := t.farthest(); t.offset < limit; {
		held := t.held()
		if n := b.Skip(held); n >= 0 {
			t.discard(n)
			return nil
		}
		t.discard(len(held))
		if err := t.more(); err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// flat is for strings and scalars, which are short where a list has them. A scalar ends before a byte that cannot be in
// it, so that byte must be there.
func (t *tokens) flat() ([]byte, error) {
	for {
		c := cursor{data: t.held()}
		quoted := c.at('"')
		c.skip()
		switch {
		case c.unsure && !quoted:
			return nil, t.wrong("want a value")
		case !c.unsure && (quoted || c.pos < len(c.data)):
			return c.data[:c.pos], t.check(c.pos)
		}
		if err := t.more(); err != nil {
			return nil, err
		}
	}
}
