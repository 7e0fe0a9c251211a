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

// Type is what a watch frame says has happened.
type Type uint8

// The types of a frame.
const (
	Added Type = iota + 1
	Modified
	Deleted
	Bookmark // the watch has come to Object.ResourceVersion
	Error    // the watch ends; Frame.Status says why
)

// String is the type's name on the wire: "ADDED".
func (t Type) String() string {
	switch t {
	case Added:
		return "ADDED"
	case Modified:
		return "MODIFIED"
	case Deleted:
		return "DELETED"
	case Bookmark:
		return "BOOKMARK"
	case Error:
		return "ERROR"
	}
	return "unknown"
}

func parseType[T string | []byte](name T) Type {
	for t := Added; t <= Error; t++ {
		if t.String() == string(name) {
			return t
		}
	}
	return 0
}

// Frame is one event of a watch.
type Frame struct {
	Type   Type
	Object Object // of every type but Error
	Status []byte // of Error: the JSON of a metav1.Status
}

// Object is one object of a watch or a list.
//
// Strings and JSON share memory that is never written again, and that other objects of the stream share: who keeps a
// string for longer than the object clones it.
type Object struct {
	Namespace, Name, UID, ResourceVersion string
	// InitialEventsEnd is set on the bookmark after the last of the initial events that a watch asked for.
	InitialEventsEnd bool
	// JSON is the object on one line, less the cuts.
	JSON []byte
	// Actor, where it is asked for, are the newest entries of managedFields, a list of JSON; nil where nobody is named.
	Actor []byte
	// Err, where not nil, is why the object cannot be read: a *SyntaxError or ErrTooLarge. JSON is nil then, and of the
	// names those are set that could be found.
	Err error
}

// Options say what becomes of the objects. The zero value makes every cut.
type Options struct {
	// KeepManagedFields leaves metadata.managedFields in.
	KeepManagedFields bool
	// KeepLastApplied leaves kubectl's annotation in that repeats the object as it was last applied.
	KeepLastApplied bool
	// Actor asks for Object.Actor.
	Actor bool
	// Kind and APIVersion are put in front of an item of a list that has none, as the items of built-in types, so that
	// an object looks the same from list and watch. A watch always has them.
	Kind, APIVersion string
	// Lend leaves the JSON of a watch's objects in memory that the next frame is read into. It is for who makes other
	// objects of them; what is to last goes through Reader.Keep. Names last in any case.
	Lend bool
	// MaxBytes is the longest frame, or item of a list, that is read; 0 is 64 MiB. API servers write up to 9.4 MB. Of
	// what is longer, the names are looked for in so much of it.
	MaxBytes int
}

const defaultMaxBytes = 64 << 20

func (o Options) maxBytes() int {
	if o.MaxBytes > 0 {
		return o.MaxBytes
	}
	return defaultMaxBytes
}
