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
