package scan

// Cursor steps through one JSON text from its front to its end. It never fails, it breaks: at the first byte that
// cannot be there it jumps to the end, where every further step stays and finds nothing. What was found before may be
// no JSON: nothing of it counts until Whole says so.
type Cursor struct {
	text   []byte
	at     int
	depth  int  // of the containers entered
	fresh  bool // a container was just entered
	broken bool
	huge   bool // a number was too large for a float64
	proven bool // the text is known to be JSON
	watch  watch
}

// New stands at the text's value.
func New(text []byte) Cursor { return Cursor{text: text, at: space(text, 0)} }

// Proven is New for a text of which a cursor, or encoding/json, has said before that it is JSON: what is skipped is not
// proven again. Of any other text the answers mean nothing, also that of Whole.
func Proven(text []byte) Cursor {
	c := New(text)
	c.proven = true
	return c
}

// At is where the cursor stands in the text.
func (c *Cursor) At() int { return c.at }

// Byte is the byte at which the cursor stands, 0 at the end.
func (c *Cursor) Byte() byte {
	if c.at >= len(c.text) {
		return 0
	}
	return c.text[c.at]
}

// Whole says whether the cursor is at the end of the text, and the text is one JSON value.
func (c *Cursor) Whole() bool {
	return !c.broken && c.depth == 0 && c.at > 0 && space(c.text, c.at) == len(c.text)
}

// Huge says whether a number that was stepped over is too large for a float64.
func (c *Cursor) Huge() bool { return c.huge }

// Enter steps into the object or list at which the cursor stands.
func (c *Cursor) Enter() {
	if c.depth++; c.depth > maxDepth {
		c.to(none)
		return
	}
	c.at, c.fresh = space(c.text, c.at+1), true
}

// Next says whether there is one more member in the container, which the bracket closes, and steps to it. Behind the
// last one it steps out. Each member must be stepped over before the next one.
func (c *Cursor) Next(bracket byte) bool {
	fresh := c.fresh
	c.fresh = false
	if !fresh {
		c.at = space(c.text, c.at)
	}
	if c.Byte() == bracket {
		c.depth--
		c.at++
		return false
	}
	if !fresh {
		c.pass(',')
	}
	return !c.broken
}

// Key steps to the member's value, and returns its key as it is written, with its quotes; nil where it breaks.
func (c *Cursor) Key() []byte {
	start := c.at
	c.to(str(c.text, start))
	key := c.from(start)
	c.at = space(c.text, c.at)
	c.pass(':')
	return key
}

// Skip steps over the value at which the cursor stands, and returns it; nil where it breaks.
func (c *Cursor) Skip() []byte {
	on := c.watch.on
	c.watch.on = false
	value := c.Pass()
	c.watch.on = on
	return value
}

// Pass is Skip, but within the value it visits what is watched.
func (c *Cursor) Pass() []byte {
	start := c.at
	if c.proven && (c.Byte() == '{' || c.Byte() == '[') && !c.watch.escapes {
		c.to(c.leap(start))
	} else {
		c.to(c.value(start, c.depth))
	}
	return c.from(start)
}

// from is the text from start to the cursor, nil where it broke.
func (c *Cursor) from(start int) []byte {
	if c.broken {
		return nil
	}
	return c.text[start:c.at]
}

func (c *Cursor) to(i int) {
	if c.broken = c.broken || i < 0; c.broken {
		i = len(c.text)
	}
	c.at = i
}

func (c *Cursor) pass(b byte) {
	if c.Byte() != b {
		c.to(none)
		return
	}
	c.at = space(c.text, c.at+1)
}
