package encode

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// typePrefix comes before the operation in the CloudEvents attribute "type".
const typePrefix = "dev.kubecdc."

// extensions hands on the extension attributes, texts and flags that are true. Their names are lower case letters only,
// as CloudEvents wants.
func extensions(rec *change.Record, cluster string, text func(name, value string), flag func(name string)) {
	optional := func(name, value string) { // CloudEvents knows no empty attribute
		if value != "" {
			text(name, value)
		}
	}
	res := &rec.Stream.Resource
	text("cluster", cluster)
	text("group", res.Group)
	text("version", res.Version)
	text("resource", res.Name)
	optional("namespace", namespace(rec))
	optional("name", rec.Key.Name)
	optional("uid", rec.UID)
	optional("resourceversion", rec.ResourceVersion)
	if rec.FinalStateUnknown {
		flag("finalstateunknown")
	}
	if s := rec.Snapshot; s != nil {
		text("snapshot", s.ID)
		text("reason", string(s.Reason))
	}
	optional("base", rec.Base)
	optional("before", string(previous(rec)))
	optional("changed", string(rec.Changed))
	if rec.ChangedCut {
		flag("changedcut")
	}
	optional("actor", string(rec.Actor))
	optional("involved", string(rec.Involved))
	marks(rec, text, flag)
}

// marks hands on what was done to the record for this sink.
func marks(rec *change.Record, text func(name, value string), flag func(name string)) {
	if rec.Remarks == nil {
		return
	}
	if rec.Remarks.Trimmed != "" {
		text("trimmed", rec.Remarks.Trimmed)
	}
	if rec.Remarks.BeforeOmitted {
		flag("beforeomitted")
	}
	if rec.Remarks.Replayed != "" {
		text("replayed", string(rec.Remarks.Replayed))
	}
}

// previous is the value of attribute before: the JSON text of the object as it was delivered last, where data is
// another state of it. Attributes are scalars (CloudEvents 1.0.2, type system), so it is a string. Whoever is sent
// a patch has it.
func previous(rec *change.Record) []byte {
	if rec.Patch == nil && (rec.Op == change.Updated || rec.Op == change.Replaced) {
		return rec.Before
	}
	return nil
}

// appendPath appends the path of the object, or of the stream's collection, on the API server.
func appendPath(dst []byte, rec *change.Record) []byte {
	dst = rec.Stream.Resource.AppendPath(dst, namespace(rec))
	if rec.Key.Name == "" {
		return dst
	}
	return append(append(dst, '/'), rec.Key.Name...)
}

// The media types of data.
const (
	typeJSON  = "application/json"
	typePatch = "application/json-patch+json" // RFC 6902, section 6
)

// content is the value of data, nil for none, and its media type.
func content(rec *change.Record) (data []byte, mediaType string) {
	if rec.Patch != nil {
		return rec.Patch, typePatch
	}
	return payload(rec), typeJSON
}

// payload is the value of data without patches: the object, or what a snapshot's frame or a gap says of itself. nil is
// none.
func payload(rec *change.Record) []byte {
	switch rec.Op {
	case change.SnapshotBegin, change.SnapshotEnd:
		return ofFrame(rec)
	case change.Gap:
		return ofGap(rec)
	case change.Resolved:
		return ofResolved(rec)
	case change.Deleted:
		return finalState(rec)
	}
	return rec.Object
}

// present makes a value of what may be none: a message without one is a tombstone.
func present(value []byte) []byte {
	if value == nil {
		return []byte{}
	}
	return value
}

// ofFrame says what a comparison is about to do, or did. The counts are known only at the end.
func ofFrame(rec *change.Record) []byte {
	s := rec.Snapshot
	dst := appendString([]byte(`{"resourceVersion":`), s.ResourceVersion)
	dst = appendMember(dst, "reason", string(s.Reason))
	if rec.Op == change.SnapshotEnd {
		dst = strconv.AppendInt(append(dst, `,"replaced":`...), int64(s.Counts.Replaced), 10)
		dst = strconv.AppendInt(append(dst, `,"deleted":`...), int64(s.Counts.Deleted), 10)
		dst = strconv.AppendInt(append(dst, `,"synced":`...), int64(s.Counts.Synced), 10)
	}
	if s.Limits != (change.Limits{}) { // it is not of all objects
		dst = append(dst, `,"limits":{`...)
		first := len(dst)
		dst = appendOptional(dst, "namespace", s.Limits.Namespace)
		dst = appendOptional(dst, "name", s.Limits.Name)
		dst = appendOptional(dst, "selector", s.Limits.Selector)
		dst = append(slices.Delete(dst, first, first+1), '}') // without the first comma
	}
	return append(dst, '}')
}

// ofGap says between which versions intermediate states may be missing, and since when, where that is known. In the
// place of a record that the sink will never take it says why, and which dead letter keeps the record.
func ofGap(rec *change.Record) []byte {
	s := rec.Snapshot
	dst := appendString([]byte(`{"reason":`), string(s.Reason))
	dst = appendMember(dst, "lastDelivered", s.From)
	dst = appendMember(dst, "resourceVersion", s.ResourceVersion)
	if !s.Since.IsZero() {
		dst = append(s.Since.UTC().AppendFormat(append(dst, `,"since":"`...), timeFormat), '"')
	}
	if rec.Remarks != nil {
		dst = appendOptional(dst, "rejected", rec.Remarks.Rejected)
		dst = appendOptional(dst, "deadLetter", rec.Remarks.Letter)
	}
	return append(dst, '}')
}

// ofResolved says up to which version everything came before, when the server had nothing newer, whether a comparison
// that is under way will tell more, and which objects the log had at an earlier one.
func ofResolved(rec *change.Record) []byte {
	dst := appendString([]byte(`{"resourceVersion":`), rec.ResourceVersion)
	dst = append(rec.Received.UTC().AppendFormat(append(dst, `,"time":"`...), timeFormat), '"')
	if rec.Snapshot != nil {
		dst = appendMember(dst, "comparing", string(rec.Snapshot.Reason))
	}
	if rec.Remarks != nil && rec.Remarks.Proof != nil {
		proof := rec.Remarks.Proof
		dst = append(proof.Time.UTC().AppendFormat(append(dst, `,"digest":{"time":"`...), timeFormat), `","objects":`...)
		dst = appendString(append(strconv.AppendInt(dst, int64(proof.Objects), 10), `,"sum":`...), proof.Sum())
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// appendString appends s as a JSON string.
func appendString(dst []byte, s string) []byte {
	start := len(dst)
	return endString(append(append(dst, '"'), s...), start)
}

// endString makes what is after the quote at dst[start] a JSON string. Nearly all names are plain ASCII and stay as
// they are; the rest takes the library's way.
func endString(dst []byte, start int) []byte {
	if isPlain(dst[start+1:]) {
		return append(dst, '"')
	}
	quoted, _ := json.Marshal(string(dst[start+1:])) // of a text it cannot fail
	return append(dst[:start], quoted...)
}

// appendMember appends a text to an object that has members before it.
func appendMember(dst []byte, name, value string) []byte {
	return appendString(append(append(append(dst, `,"`...), name...), `":`...), value)
}

// appendOptional appends nothing where the value is empty.
func appendOptional(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	return appendMember(dst, name, value)
}

// appendTrue appends a flag to an object that has members before it.
func appendTrue(dst []byte, name string) []byte {
	return append(append(append(dst, `,"`...), name...), `":true`...)
}

// timeFormat is RFC 3339 with microseconds, always six digits, so that the text sorts as the time does.
const timeFormat = "2006-01-02T15:04:05.000000Z07:00"

// textBlock is how many bytes of texts share one allocation, at most. Who keeps one of them keeps them all.
const textBlock = 4 << 10

// texts are the strings of one message that are made for it: its id, its destination, values of its headers. They share
// one allocation with those of other messages.
type texts struct {
	bytes []byte
	id    int // the id's length; it comes first
	spans []span
	made  strings.Builder // what was made until now; only its last part is written to
}

// span is one text and whose it is.
type span struct{ start, end, place int }

// placeOfDestination stands for the destination; other places are indexes of the message's headers.
const placeOfDestination = -1

// begin starts with the id.
func (t *texts) begin(bytes []byte) { t.bytes, t.id, t.spans = bytes, len(bytes), t.spans[:0] }

// ID is valid until the next begin.
func (t *texts) ID() []byte { return t.bytes[:t.id] }

// put takes what was appended to bytes as the text of the place.
func (t *texts) put(place int, bytes []byte) {
	t.spans = append(t.spans, span{len(t.bytes), len(bytes), place})
	t.bytes = bytes
}

// end gives the message its texts.
func (t *texts) end(msg *sink.Message) {
	if t.made.Cap()-t.made.Len() < len(t.bytes) {
		t.made.Reset()
		t.made.Grow(max(textBlock, len(t.bytes)))
	}
	start := t.made.Len()
	t.made.Write(t.bytes)
	all := t.made.String()[start:]
	msg.ID = all[:t.id]
	for _, s := range t.spans {
		if s.place == placeOfDestination {
			msg.Destination = all[s.start:s.end]
		} else {
			msg.Headers[s.place].Value = all[s.start:s.end]
		}
	}
}

// namespace is the object's, or the stream's for a record that speaks of the stream.
func namespace(rec *change.Record) string {
	if rec.Key.Name != "" {
		return rec.Key.Namespace
	}
	return rec.Stream.Namespace
}

// finalState is the last state of an object that is gone, or where nobody saw it the last one that was delivered.
func finalState(rec *change.Record) []byte {
	if rec.Object == nil {
		return rec.Before
	}
	return rec.Object
}

// isPlain says whether all bytes stand for themselves in a JSON string: printable ASCII, neither quote nor backslash.
func isPlain(text []byte) bool {
	for _, c := range text {
		if c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
