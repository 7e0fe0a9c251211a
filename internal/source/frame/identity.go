package frame

import "encoding/json"

// Of what cannot be read, whose it is can mostly be told: encoding/json refuses a text as a whole, also where only a
// part is no JSON, is nested too deeply, or is too large to be held. So these methods look for names alone, and step
// over the rest.

// unreadableItem is what can be told of an item. data may be its front alone.
func unreadableItem(data []byte, why error) Object {
	c := cursor{data: data}
	o := c.identity()
	o.Err = why
	return o
}

// unreadableFrame is what can be told of a line, which may be its front alone. It returns the reason as an error where
// the type, or the object's name or resourceVersion, cannot be told.
func unreadableFrame(line []byte, why error) (f Frame, err error) {
	c := cursor{data: line}
	c.fields(func(key string) {
		switch key {
		case "type":
			f.Type = parseType(c.text())
		case "object":
			f.Object = c.identity()
		default:
			c.skip()
		}
	})
	if f.Type < Added || f.Type > Deleted || f.Object.Name == "" || f.Object.ResourceVersion == "" {
		return Frame{}, why
	}
	f.Object.Err = why
	return f, nil
}

// identity returns the names of the object at the cursor, as far as they are there, and steps over it.
func (c *cursor) identity() (o Object) {
	c.fields(func(key string) {
		if key != "metadata" {
			c.skip()
			return
		}
		o = Object{} // the last metadata counts
		c.fields(func(key string) {
			switch key {
			case "name":
				o.Name = c.text()
			case "namespace":
				o.Namespace = c.text()
			case "uid":
				o.UID = c.text()
			case "resourceVersion":
				o.ResourceVersion = c.text()
			default:
				c.skip()
			}
		})
	})
	return o
}

// fields calls each with the key of every member of the object at the cursor; each steps over the value. What is no
// object has no members.
func (c *cursor) fields(each func(key string)) {
	if c.space(); !c.at('{') {
		c.skip()
		return
	}
	c.pos++
	for c.space(); !c.at('}'); c.space() {
		if c.at(',') {
			c.pos++
			c.space()
		}
		key, read := c.string()
		if c.space(); !read || !c.at(':') {
			c.giveUp()
			return
		}
		c.pos++
		c.space()
		each(key)
	}
	c.pos++
}

func (c *cursor) space() {
	for c.pos < len(c.data) && isSpace(c.data[c.pos]) {
		c.pos++
	}
}

// string reads the string at the cursor.
func (c *cursor) string() (s string, read bool) {
	start := c.pos
	c.skipString()
	return s, !c.unsure && json.Unmarshal(c.data[start:c.pos], &s) == nil
}

// text is the string at the cursor, "" where something else is.
func (c *cursor) text() string {
	if !c.at('"') {
		c.skip()
		return ""
	}
	s, _ := c.string()
	return s
}
