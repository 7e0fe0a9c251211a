package involved

import (
	"bytes"
	"slices"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/scan"
)

// Unknown is why nothing is known of the object.
type Unknown string

// The reasons, as records have them.
const (
	Unnamed        Unknown = "unnamed"        // the Event names no object, as far as it is told
	NotStreamed    Unknown = "notstreamed"    // objects of the kind are not kept, or are Events
	OtherNamespace Unknown = "othernamespace" // an Event of this namespace may not tell of it
	Absent         Unknown = "absent"         // it was not told, or it is gone
	OtherUID       Unknown = "otheruid"       // the object of the name is another one
	TooLarge       Unknown = "toolarge"       // more than maxKnown bytes
	Unreadable     Unknown = "unreadable"     // what is kept of it is no JSON, or a sink's rules fail for it
)

// Unknowns are all reasons.
func Unknowns() []Unknown {
	return []Unknown{Unnamed, NotStreamed, OtherNamespace, Absent, OtherUID, TooLarge, Unreadable}
}

// json is the reason as a record has it.
func (u Unknown) json() []byte { return []byte(unknownIs + `"` + string(u) + `"}`) }

const unknownIs = `{"unknown":`

// maxKnown is how many bytes of an object's metadata are told with an Event.
const maxKnown = 16 << 10

// Finder finds what Events are about. It may be used from any goroutine if its parts may.
type Finder struct {
	// Images are an object's states as it was told last.
	Images func(stream *change.Stream, key change.Key) (change.Images, error)
	// Streams are those of the kind whose objects are kept.
	Streams func(Kind) []*change.Stream
	Fields  []string // names in the metadata, each once
}

// Find is what is known of the object that the record's Event is about, an object of JSON: its resourceVersion and what
// is asked for of its metadata, or {"unknown":REASON}. It is nil where the record has no Event.
func (f *Finder) Find(rec *change.Record) ([]byte, error) {
	if !rec.Op.OfObject() || rec.Object == nil || rec.Filtered || rec.Withheld != "" {
		return nil, nil
	}
	ref, named := referenceOf(&rec.Stream.Resource, rec.Object)
	if !named {
		return Unnamed.json(), nil
	}
	stream, unknown := f.streamOf(&ref, rec.Key.Namespace)
	if unknown != "" {
		return unknown.json(), nil
	}
	images, err := f.Images(stream, ref.key)
	switch {
	case err != nil:
		return nil, err
	case len(images) == 0 || images[0].Object == nil:
		return Absent.json(), nil
	case images[0].UID != ref.uid:
		return OtherUID.json(), nil
	}
	return f.known(images[0].Object), nil
}

// streamOf is the stream that has the object, if an Event in the namespace may tell of it.
func (f *Finder) streamOf(ref *reference, namespace string) (*change.Stream, Unknown) {
	streams := f.Streams(ref.Kind)
	if len(streams) == 0 {
		return nil, NotStreamed
	}
	if streams[0].Resource.ClusterScoped {
		if ref.key.Namespace != "" || namespace != "default" {
			return nil, OtherNamespace
		}
		return streams[0], ""
	}
	if ref.key.Namespace != namespace || namespace == "" {
		return nil, OtherNamespace
	}
	at := slices.IndexFunc(streams, func(s *change.Stream) bool { return s.Namespace == "" || s.Namespace == namespace })
	if at < 0 {
		return nil, NotStreamed
	}
	return streams[at], ""
}

// known is what is asked for of the object's metadata.
func (f *Finder) known(object []byte) []byte {
	var proof scan.Proof
	proof.Prove(object, "")
	if !proof.Whole() {
		return Unreadable.json()
	}
	var out []byte
	for _, name := range append([]string{"resourceVersion"}, f.Fields...) {
		value := proof.Find("metadata", name)
		if len(value) == 0 {
			continue
		}
		if len(out)+len(value) > maxKnown {
			return TooLarge.json()
		}
		out = append(append(append(append(out, `,"`...), name...), `":`...), value...)
	}
	if out == nil {
		return []byte("{}")
	}
	out[0] = '{'
	return append(out, '}')
}

// Narrow is what a record with the event may carry for one sink, whose rules have made the event of another one: rules
// are those of the sink, for that object, of which there is metadata alone. What cannot be narrowed is unreadable (I9).
func Narrow(events *change.Resource, event, known []byte, rules func(of Kind, key change.Key, object []byte) ([]byte, error)) []byte {
	if known == nil {
		return nil
	}
	ref, named := referenceOf(events, event)
	if !named {
		return Unnamed.json()
	}
	if bytes.HasPrefix(known, []byte(unknownIs)) {
		return known
	}
	object, err := rules(ref.Kind, ref.key, slices.Concat([]byte(`{"metadata":`), known, []byte{'}'}))
	if err != nil {
		return Unreadable.json()
	}
	var proof scan.Proof
	proof.Prove(object, "")
	if left := proof.Find("metadata"); len(left) > 0 && left[0] == '{' {
		return bytes.Clone(left)
	}
	return []byte("{}")
}

// IsEvents says whether the resource is Events, of the core group or of events.k8s.io: both are the same objects.
func IsEvents(resource *change.Resource) bool {
	return resource.Name == "events" && (resource.Group == "" || resource.Group == "events.k8s.io")
}

// Kind is that of an object, whatever the version.
type Kind struct{ Group, Kind string }

// reference names the object that an Event is about (v1.ObjectReference).
type reference struct {
	Kind
	key change.Key
	uid string
}

// referenceOf is what the Event names; false where it names nothing that an object could have as its name.
func referenceOf(events *change.Resource, event []byte) (reference, bool) {
	var proof scan.Proof
	proof.Prove(event, "")
	field := "regarding"
	if events.Group == "" {
		field = "involvedObject"
	}
	text := func(name string) string {
		text, _ := proof.FindText(field, name)
		return text
	}
	group, _, versioned := strings.Cut(text("apiVersion"), "/")
	if !versioned {
		group = ""
	}
	ref := reference{
		Kind: Kind{group, text("kind")}, key: change.Key{Namespace: text("namespace"), Name: text("name")}, uid: text("uid"),
	}
	name := ref.key.Name // no object's has a slash in it (apimachinery, path segment names)
	return ref, ref.Kind.Kind != "" && name != "" && len(name) <= change.MaxNamed && !strings.ContainsAny(name, "/%")
}
