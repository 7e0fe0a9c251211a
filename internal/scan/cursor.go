package scan

// Cursor steps through a text that is proven to be JSON, from its front to its end.
type Cursor struct {
	proof *Proof
	at    int
	place int  // the first that does not start before it
	fresh bool // a container was just entered
}

// At is where the cursor stands in the text.
func (c *Cursor) At() int { return c.at }

// Place is the number of the object, list or long string at which the cursor stands, or of the next one.
func (c *Cursor) Place() int { return c.place }

// Byte is the byte at which the cursor stands, 0 at the end.
func (c *Cursor) Byte() byte {
	if c.at >= len(c.proof.text) {
		return 0
	}
	return c.proof.text[c.at]
}

// Enter steps into the object or list at which the cursor stands.
func (c *Cursor) Enter() {
	c.at, c.place, c.fresh = space(c.proof.text, c.at+1), c.place+1, true
}

// Next says whether there is one more member in the container, which the bracket closes, and steps to it. After the
// last one it steps out. Each member must be stepped over before the next one.
func (c *Cursor) Next(bracket byte) bool {
	text := c.proof.text
	if !c.fresh {
		c.at = space(text, c.at)
	}
	if text[c.at] == bracket {
		c.at, c.fresh = c.at+1, false
		return false
	}
	if !c.fresh {
		c.at = space(text, c.at+1) // after a comma
	}
	c.fresh = false
	return true
}

// Key steps to the member's value, and returns its key as it is written, with its quotes.
func (c *Cursor) Key() []byte {
	text, start := c.proof.text, c.at
	end := str(text, start)
	c.at = space(text, space(text, end)+1)
	return text[start:end]
}

// Skip steps over the value at which the cursor stands, and returns it.
func (c *Cursor) Skip() []byte {
	text, start := c.proof.text, c.at
	switch text[start] {
	case '{', '[':
		over := &c.proof.places[c.place]
		c.at, c.place = int(over.end), int(over.next)
	case '"':
		c.skipString()
	default:
		c.at = scalar(text, start)
	}
	return text[start:c.at]
}

func (c *Cursor) skipString() {
	if c.place < len(c.proof.places) && int(c.proof.places[c.place].start) == c.at {
		c.at, c.place = int(c.proof.places[c.place].end), c.place+1
		return
	}
	c.at = str(c.proof.text, c.at)
}

// Field steps into the object at which the cursor stands, to the value of the field, and says how many fields there
// are. Of a key that comes twice the last one counts.
func (c Cursor) Field(name string) (found Cursor, there bool, fields int) {
	c.Enter()
	for ; c.Next('}'); fields++ {
		if string(Text(c.Key())) == name {
			found, there = c, true
		}
		c.Skip()
	}
	return found, there, fields
}

// scalar returns where the number or word at i ends.
func scalar(p []byte, i int) int {
	for ; i < len(p); i++ {
		switch p[i] {
		case ',', '}', ']', ' ', '\n', '\t', '\r':
			return i
		}
	}
	return i
}

// Cursor stands at the text's value.
func (p *Proof) Cursor() Cursor { return Cursor{proof: p, at: space(p.text, 0)} }

// Find is the value to which the names of fields lead, nil where there is none.
func (p *Proof) Find(path ...string) []byte {
	if !p.whole {
		return nil
	}
	c := p.Cursor()
	for _, name := range path {
		there := c.Byte() == '{'
		if there {
			c, there, _ = c.Field(name)
		}
		if !there {
			return nil
		}
	}
	return c.Skip()
}

// At stands at a place.
func (p *Proof) At(place int) Cursor {
	return Cursor{proof: p, at: int(p.places[place].start), place: place}
}
