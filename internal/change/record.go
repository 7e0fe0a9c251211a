package change

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// MaxShown is how many bytes of a text people are shown, in a line of the log or an error of a status. The text may
// have a name in it, and whoever may create a Role chooses one as long as etcd takes.
const MaxShown = 8 << 10

// Shown is the text as people are shown it: of one of more than so many bytes the beginning, the hash that a note has,
// and the end.
func Shown(text string, most int) string {
	if len(text) <= most {
		return text
	}
	hash := "..." + hashOf(text) + "..."
	end := most / 4
	begin := most - end - len(hash)
	return strings.ToValidUTF8(text[:begin], "") + hash + strings.ToValidUTF8(text[len(text)-end:], "")
}

// Shown is the key as people are shown it.
func (k Key) Shown() string {
	k.Name = Shown(k.Name, MaxNamed)
	return k.String()
}

// MaxNamed is how many bytes of a name a note has at most. Names of most kinds have 253; those of Roles are bounded by
// etcd alone, and in an id, a subject and a header each byte may take three.
const MaxNamed = 512

// namedByHash begins what stands in a note for a name that is too long. No name has a "%" in it (apimachinery, path
// segment names).
const namedByHash = "%sha256-"

// NoteOf is the gap record that stands for a rejected one. It is small whatever the record is, so that every sink takes
// it.
func NoteOf(rec *Record, reason, letter string) *Record {
	note := *rec
	note.Op, note.Object, note.Before, note.Withheld, note.FinalStateUnknown = Gap, nil, nil, "", false
	note.Actor, note.Involved, note.Changed, note.ChangedCut, note.Patch, note.Base = nil, nil, nil, false, nil, ""
	note.Key, note.UID = boundedKey(rec.Key, MaxNamed), bounded(rec.UID, MaxNamed)
	note.ResourceVersion = bounded(rec.ResourceVersion, MaxNamed)
	note.Remarks = &Remarks{Rejected: reason, Letter: letter}
	note.Snapshot = &Snapshot{
		ID: note.ResourceVersion, Reason: Policy, From: note.ResourceVersion, ResourceVersion: note.ResourceVersion,
	}
	return &note
}

// ShorterNote is the note with the hash of its name, for a sink that does not take the name itself. It is nil where the
// note has that already.
func ShorterNote(note *Record) *Record {
	if note.Remarks == nil || note.Key.Name == "" || isHash(note.Key.Name) {
		return nil
	}
	hashed := *note
	hashed.Key = note.Key.Hashed()
	return &hashed
}

// NotesOf are the ids that the note of the record may have.
func NotesOf(id ID) [2]ID {
	id.Op, id.UID, id.ResourceVersion = Gap, bounded(id.UID, MaxNamed), bounded(id.ResourceVersion, MaxNamed)
	id.Snapshot, id.Key = id.ResourceVersion, boundedKey(id.Key, MaxNamed)
	hashed := id
	hashed.Key = hashed.Key.Hashed()
	return [2]ID{id, hashed}
}

// Hashed is the key that the shortest note of the object has.
func (k Key) Hashed() Key {
	if !isHash(k.Name) {
		k.Name = hashOf(k.Name)
	}
	return k
}

// HashPrefix is what the keys of all shortest notes of its namespace begin with.
func (k Key) HashPrefix() Key { return Key{Namespace: k.Namespace, Name: namedByHash} }

func boundedKey(key Key, most int) Key {
	return Key{Namespace: bounded(key.Namespace, most), Name: bounded(key.Name, most)}
}

// bounded is the text, or its hash where it is longer.
func bounded(text string, most int) string {
	if len(text) <= most || isHash(text) {
		return text
	}
	return hashOf(text)
}

func isHash(text string) bool {
	return len(text) == len(namedByHash)+2*sha256.Size && text[:len(namedByHash)] == namedByHash
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return namedByHash + hex.EncodeToString(sum[:])
}

// ID identifies an event on the wire. It is a pure function of epoch, resource, object and version (I8), so that a
// replay carries the id that the first sending carried, and it can be read back, so that a sink's own log tells what a
// crash left undone.
//
// Its text is "cluster/resource/namespace/name/uid/resourceVersion/op" and, for sync and for the records that frame a
// comparison, "/snapshot". That of what is resolved ends in its version and its time in milliseconds since 1970.
// Namespace, name and uid may be empty. Bytes outside printable ASCII, and space, '"', '%' and '\', are
// percent-encoded, so an id needs no escaping in JSON and in headers.
type ID struct {
	// the first eight characters of the uid of namespace kube-system, and the history's name, where it has one
	Cluster         string
	Resource        string // kubectl's form
	Key             Key
	UID             string
	ResourceVersion string
	Op              Op
	Snapshot        string
}

// ID is the record's identity in its epoch or, where it has none, in the first history of the cluster whose kube-system
// namespace has the uid.
func (r *Record) ID(clusterUID string) ID {
	id := r.idInResource()
	id.Cluster, id.Resource = string(appendClusterOfID(nil, r.epochOr(clusterUID))), r.Stream.Resource.String()
	return id
}

// AppendID appends the text of the record's ID to dst, and allocates nothing else.
func (r *Record) AppendID(dst []byte, clusterUID string) []byte {
	dst = append(appendClusterOfID(dst, r.epochOr(clusterUID)), '/')
	return r.idInResource().appendInResource(r.Stream.Resource.AppendString(dst))
}

func (r *Record) epochOr(clusterUID string) string {
	if r.Epoch != "" {
		return r.Epoch
	}
	return clusterUID
}

// idInResource is the record's ID without its cluster and its resource.
func (r *Record) idInResource() ID {
	id := ID{
		Key:             r.Key,
		UID:             r.UID,
		ResourceVersion: r.ResourceVersion,
		Op:              r.Op,
	}
	if r.Key.Name == "" && r.Key.Namespace == "" { // it speaks of the stream
		id.Key.Namespace = r.Stream.Namespace
	}
	switch {
	case r.Op == Resolved:
		id.Snapshot = r.ResourceVersion + "." + strconv.FormatInt(r.Received.UnixMilli(), 10)
	case r.Snapshot != nil && (r.Op == Sync || !r.Op.OfObject()):
		id.Snapshot = r.Snapshot.ID
	}
	return id
}

// String is the id's text on the wire.
func (id ID) String() string { return string(id.Append(make([]byte, 0, 128))) }

// Append appends the id's text to dst.
func (id ID) Append(dst []byte) []byte {
	dst = append(dst, id.Cluster...)
	return id.appendInResource(append(append(dst, '/'), id.Resource...))
}

// appendInResource appends what comes after the resource.
func (id ID) appendInResource(dst []byte) []byte {
	dst = appendEscaped(append(dst, '/'), id.Key.Namespace)
	dst = appendEscaped(append(dst, '/'), id.Key.Name)
	dst = appendEscaped(append(dst, '/'), id.UID)
	dst = appendEscaped(append(dst, '/'), id.ResourceVersion)
	dst = append(append(dst, '/'), id.Op.String()...)
	if id.Snapshot != "" {
		dst = append(append(dst, '/'), id.Snapshot...)
	}
	return dst
}

func appendEscaped(dst []byte, s string) []byte {
	const hex = "0123456789ABCDEF"
	done := 0
	for i := range len(s) {
		if c := s[i]; escapes[c] {
			dst = append(append(dst, s[done:i]...), '%', hex[c>>4], hex[c&15])
			done = i + 1
		}
	}
	return append(dst, s[done:]...)
}

// escapes are the bytes that an id has percent-encoded.
var escapes = escapedBytes()

func escapedBytes() (is [256]bool) {
	for c := range is {
		is[c] = c <= ' ' || c >= 0x7f || c == '"' || c == '%' || c == '\\' || c == '/'
	}
	return is
}

// ErrForeignID is a text that is no id of ours.
var ErrForeignID = errors.New("not an id that kubecdc wrote")

// ParseID is the inverse of ID.String. It returns ErrForeignID for any other text, and for the id of an actor: that
// says nothing of what a log has of an object.
func ParseID(text string) (ID, error) {
	id, err := ParseAnyID(text)
	if err == nil && id.Op == Actor {
		return ID{}, ErrForeignID
	}
	return id, err
}

// ParseAnyID is ParseID that also takes the id of an actor.
func ParseAnyID(text string) (ID, error) {
	part := strings.Split(text, "/")
	if len(part) != 7 && len(part) != 8 {
		return ID{}, ErrForeignID
	}
	for i := 2; i < 6; i++ {
		unescaped, err := url.PathUnescape(part[i])
		if err != nil {
			return ID{}, ErrForeignID
		}
		part[i] = unescaped
	}
	id := ID{
		Cluster: part[0], Resource: part[1], Key: Key{Namespace: part[2], Name: part[3]},
		UID: part[4], ResourceVersion: part[5], Op: ParseOp(part[6]),
	}
	if id.Op == 0 || id.Resource == "" {
		return ID{}, ErrForeignID
	}
	if len(part) == 8 {
		id.Snapshot = part[7]
	}
	return id, nil
}

// Record is one delta on its way. It is immutable once it has its Seq: every listener's queue holds the same pointer.
//
// Key, UID, ResourceVersion and Object share memory that the decoder copied from the wire once.
type Record struct {
	// Seq orders the records of all streams of this process, from 1. It is given by fifo.Queue.
	Seq    uint64
	Stream *Stream
	Op     Op
	Key    Key
	UID    string
	// ResourceVersion of the object; for a bookmark, a snapshot or a gap that of the stream. A delete found by a
	// comparison carries the last version that was delivered, since the delete's own is not known.
	ResourceVersion string
	// Object is the object's JSON as the API server wrote it, less what is cut by configuration. nil where there is
	// none: a bookmark, a snapshot's frame, a delete whose last state was not seen.
	Object []byte
	// Before is the object as it was delivered last, in the form in which it was; nil where that is not kept, or there
	// is none. Sync records have none.
	Before []byte
	// Changed are the pointers of what differs from Before, a list of JSON, where that is asked for; ChangedCut says
	// that there are more. Both are made for each sink.
	Changed    []byte
	ChangedCut bool
	// Patch, where not nil, goes out in the place of Object: a JSON Patch (RFC 6902) that makes Object of what the sink
	// has of the object, its version Base. Both are made for each sink.
	Patch []byte
	Base  string
	// Actor are the field managers that changed the object last, a list of JSON; nil where that is not asked for, or
	// not known.
	Actor []byte
	// Involved is what is known of the object that an Event is about, an object of JSON as package involved makes it;
	// nil where that is not asked for.
	Involved []byte
	// NamespaceLabels are those of the object's namespace, as they were known when the record was read, or came back
	// from disk; nil where nobody asks for them. They choose places, and are not told.
	NamespaceLabels map[string]string
	// Received is when the exporter read the record.
	Received time.Time
	// FinalStateUnknown marks a delete that no watch saw (cache.DeletedFinalStateUnknown).
	FinalStateUnknown bool
	// Aside marks a record that one listener has put in: it was in no queue, and nobody waits for it.
	Aside bool
	// Snapshot is the comparison that the record belongs to, nil for a record of the watch.
	Snapshot *Snapshot
	// Sink names the only sink that the record is for; "" is all.
	Sink string
	// Epoch is the history that the record was read from, as of NewEpoch, "" for the first one of the cluster that the
	// exporter started with.
	Epoch string
	// Filtered marks a record that no sink takes, since the user does not want it. It moves the position.
	Filtered bool
	// Ignored marks an update that differs in nothing that matters from what was told last: it goes to a sink that was
	// told nothing of the object.
	Ignored bool
	// Remarks are what was done to the record for one sink, nil for nothing.
	Remarks *Remarks
	// Replay is set on a dead letter that is sent again to Sink. Such a record stays in memory, as whoever waits for it
	// does.
	Replay *Replay
	// DuringSnapshot says of an update that it came while a snapshot was read: it may be the first that a sink hears of
	// the object.
	DuringSnapshot bool
	// Withheld, where not "", is why no sink may have the record: a gap stands in its place, and its object, where
	// there is one, is for a person to look at.
	Withheld string
	// Keep says that the object as it is delivered is kept, to be the Before of the next record.
	Keep bool
	// Form is, of a record that comes from disk, by which rules its object was cut and redacted; "" is not known.
	Form string
	// Last marks the last record of a snapshot that speaks of an object.
	Last bool
	// Given, where not "", is the version up to which the listener that has the record was given everything of the
	// stream, once it has it.
	Given string
}

// Unreadable is why a record is withheld, or the reason of a gap of a stream, where what the API server sent cannot be
// read. Such a record has no object.
const Unreadable = "unreadable"

// overhead approximates what a Record costs in memory beside its object: the struct, its slot in queue and tracker.
const overhead = 384

// Size is the memory in bytes that the record holds while it is queued.
func (r *Record) Size() int {
	return overhead + len(r.Object) + len(r.Before) + len(r.Actor) + len(r.Involved)
}

// Keeps says what is kept of the object after the record, nil for nothing; false leaves what was. What no sink was
// given is not kept, and a record for one sink says nothing of the others.
func (r *Record) Keeps() (object []byte, changed bool) {
	switch {
	case !r.Keep || !r.Op.OfObject() || r.Sink != "" || r.Ignored:
		return nil, false
	case r.Op == Deleted:
		return nil, true
	case r.Withheld != "":
		return nil, false
	}
	return r.Object, r.Object != nil
}

// Remarks are what was done to a record on its way to one sink. They go out beside the record.
type Remarks struct {
	// Trimmed are the paths that were cut to make the record fit into the sink, joined by commas; "" is none.
	Trimmed string
	// BeforeOmitted says that the record went without its Before, with which it did not fit into the sink. A delete
	// went without the last state of its object, which the record has still: it goes where the object went.
	BeforeOmitted bool
	// Replayed says of a dead letter that it is sent again, and what it is worth; "" is an ordinary record.
	Replayed Replayed
	// Rejected, of a gap of reason Policy, is why the sink will never take the record: "too_large", "invalid".
	Rejected string
	// Letter, of such a gap, is the id of the dead letter in which the record is kept; "" is none.
	Letter string
	// Proof, of a record of Resolved, is nil where nothing is known of an earlier one.
	Proof *Proof
}

// LeftOut names what the record went without, "" is nothing.
func (m *Remarks) LeftOut() string {
	switch {
	case m == nil:
		return ""
	case m.BeforeOmitted && m.Trimmed != "":
		return "before," + m.Trimmed
	case m.BeforeOmitted:
		return "before"
	}
	return m.Trimmed
}

// Replayed is what a dead letter is worth when it is sent again.
type Replayed string

const (
	// Current is the object's newest state, as far as the exporter knows.
	Current Replayed = "current"
	// History is a state that a newer one has replaced, or of an object that is gone. Who keeps states passes over it.
	History Replayed = "history"
)

// Replay is a dead letter's way to its sink.
type Replay struct {
	Letter string // its id
	Force  bool   // send it also where it is History
	// Done is told once what became of it: nil is delivered, without what is left out. It returns at once.
	Done func(leftOut string, err error)
}

// An epoch is one history of one cluster: the uid of its namespace kube-system and, in every history but the first that
// was read, "~" and a name. An etcd that was restored gives versions again that it gave before, to other states of the
// same objects, so uid and version alone do not tell what a record says.
const epochSeparator = '~'

// NewEpoch is the epoch of a history of the cluster that was found at the time, in milliseconds since 1970.
func NewEpoch(clusterUID string, found int64) string {
	return clusterUID + string(epochSeparator) + strconv.FormatInt(found, 36)
}

// EpochFound is when the history was found, zero for the first one of a cluster.
func EpochFound(epoch string) time.Time {
	at := separatorOf(epoch)
	if at == len(epoch) {
		return time.Time{}
	}
	found, err := strconv.ParseInt(epoch[at+1:], 36, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(found)
}

// ClusterOf is the part of an epoch, or of an ID's Cluster, that names the cluster.
func ClusterOf(epoch string) string { return epoch[:separatorOf(epoch)] }

// SameCluster says whether the cluster of an ID may be the one with the uid.
func SameCluster(ofID, uid string) bool { return ClusterOf(ofID) == uid[:min(len(uid), 8)] }

// appendClusterOfID appends what an id says of the epoch: the first eight characters of the uid, and the name of the
// history.
func appendClusterOfID(dst []byte, epoch string) []byte {
	at := separatorOf(epoch)
	return append(append(dst, epoch[:min(at, 8)]...), epoch[at:]...)
}

func separatorOf(epoch string) int {
	if at := strings.IndexByte(epoch, epochSeparator); at >= 0 {
		return at
	}
	return len(epoch)
}
