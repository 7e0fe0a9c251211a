// Package frame scans what an API server writes: the frames of a watch and the pages of a list, both as JSON. It looks
// for an object's identity and leaves the rest as bytes, since decoding objects costs forty times more than needed.
//
// An object's bytes are copied once, with the cuts made, and stay as the server wrote them otherwise. A fast scan knows
// JSON as API servers write it: compact, with plain keys, none twice. Whatever else comes, the frame is handed to a
// slow path that goes through encoding/json, and the result is the same.
//
// The fast scan checks that quotes and brackets are balanced in what it steps over, and not what is between them.
// After the metadata of a frame's object it checks only that the frame ends with two braces: a frame has a type and an
// object and nothing else, an object its metadata once, and a line one frame. An API server writes valid JSON, and a
// frame that was cut off has no newline and is never scanned. For bytes that are not JSON, or for a frame with more in
// it, the answer is an error or an object that is no JSON either, and never a panic. The slow path refuses what
// encoding/json refuses, with it any nesting deeper than 10,000.
//
// An object that is refused, or too large to be held, is handed on without its JSON: nobody who writes objects can stop
// a list or a watch with one.
package frame

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
