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

// MaxShown is the most bytes of a text that people are shown, in a log line or in an error of the status. The text may
// contain a name, and whoever may create a Role can choose one as long as etcd takes.
const MaxShown = 8 << 10

// Shown is the text as people are shown it. Of a text of more than most bytes that is the beginning, the hash that a
// note would have, and the end.
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

// MaxNamed is the longest name in bytes that a note carries; a longer one is replaced by its hash. Names of most kinds
// have 253 at most. Those of Roles are bounded by etcd alone, and in an id, a subject and a header each byte may take
// three.
const MaxNamed = 512

// namedByHash begins the hash that stands in a note for a name that is too long. No name has a "%" in it (apimachinery,
// path segment names).
const namedByHash = "%sha256-"

// NoteOf is the note of a rejected record: a gap that takes its place. It is small whatever the record is, so that
// every sink takes it.
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

// ShorterNote is the note with a hash in place of its name, for a sink that does not take the name. It is nil if the
// note has the hash already.
func ShorterNote(note *Record) *Record {
	if note.Remarks == nil || note.Key.Name == "" || isHash(note.Key.Name) {
		return nil
	}
	hashed := *note
	hashed.Key = note.Key.Hashed()
	return &hashed
}

// NotesOf are the ids that a note of the record with this id may have.
func NotesOf(id ID) [2]ID {
	id.Op, id.UID, id.ResourceVersion = Gap, bounded(id.UID, MaxNamed), bounded(id.ResourceVersion, MaxNamed)
	id.Snapshot, id.Key = id.ResourceVersion, boundedKey(id.Key, MaxNamed)
	hashed := id
	hashed.Key = hashed.Key.Hashed()
	return [2]ID{id, hashed}
}

// Hashed is the key in the shortest note of the object.
func (k Key) Hashed() Key {
	if !isHash(k.Name) {
		k.Name = hashOf(k.Name)
	}
	return k
}

// HashPrefix begins the keys of all shortest notes in the key's namespace.
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

// ID identifies an event on the wire. It is a pure function of epoch, resource, object, version and operation (I8), so
// a record that is sent again has the same id. It can be parsed, so a sink's own log tells what a crash left undone.
//
// Its text is "cluster/resource/namespace/name/uid/resourceVersion/op" and, for sync and for the frames of a
// comparison, "/snapshot". The last part of a Resolved record is its version and its time in milliseconds since 1970.
// Namespace, name and uid may be empty. Bytes outside printable ASCII, and space, '"', '%', '\' and '/', are
// percent-encoded, so an id needs no escaping in JSON or in headers.
type ID struct {
	// the first eight characters of the uid of namespace kube-system, and the name of the history if it has one
	Cluster         string
	Resource        string // kubectl's form
	Key             Key
	UID             string
	ResourceVersion string
	Op              Op
	Snapshot        string
}

// ID is the record's id in its epoch. If the record has none, that is the first history of the cluster whose
// kube-system namespace has the uid.
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
	if r.Key.Name == "" && r.Key.Namespace == "" { // it is about the whole stream
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

// escapes are the bytes that are percent-encoded in an id.
var escapes = escapedBytes()

func escapedBytes() (is [256]bool) {
	for c := range is {
		is[c] = c <= ' ' || c >= 0x7f || c == '"' || c == '%' || c == '\\' || c == '/'
	}
	return is
}

// ErrForeignID says that a text is no id that kubecdc wrote.
var ErrForeignID = errors.New("not an id that kubecdc wrote")

// ParseID is the inverse of ID.String. It returns ErrForeignID for any other text. It also does so for the id of an
// Actor record, which does not tell what a log has of an object.
func ParseID(text string) (ID, error) {
	id, err := ParseAnyID(text)
	if err == nil && id.Op == Actor {
		return ID{}, ErrForeignID
	}
	return id, err
}

// ParseAnyID is ParseID, but accepts the id of an Actor record, too.
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

// Record is one delta on its way. Each sink's queue has a copy of its own. The copies share their byte slices, which
// nobody changes.
//
// Key, UID, ResourceVersion and Object share the memory to which the decoder copied them from the wire.
type Record struct {
	// Seq numbers the records of one sink's queue, of all streams, from 1. fifo.Queue assigns it; a record from disk
	// has 0.
	Seq    uint64
	Stream *Stream
	Op     Op
	Key    Key
	UID    string
	// ResourceVersion of the object; of the stream for a bookmark, a frame of a snapshot, or a gap. A delete that a
	// comparison found carries the last version that was delivered, since its own is not known.
	ResourceVersion string
	// Object is the object's JSON as the API server wrote it, without what the configuration cuts. It is nil for a
	// bookmark, a frame of a snapshot, and a delete whose last state was not seen.
	Object []byte
	// Before is the object as it was delivered last, in the form of that time. It is nil if there is none or objects
	// are not kept. Sync records have none.
	Before []byte
	// Changed is a JSON array of pointers (RFC 6901) to what differs from Before, if the sink asks for it. ChangedCut
	// says that there are more. Both are made for each sink.
	Changed    []byte
	ChangedCut bool
	// Patch, if not nil, is sent instead of Object: a JSON Patch (RFC 6902) that turns the state that the sink has, of
	// version Base, into Object. Both are made for each sink.
	Patch []byte
	Base  string
	// Actor is a JSON array of the field managers that changed the object last; nil if nobody asks for it, or it is not
	// known.
	Actor []byte
	// Involved is what is known of the object that an Event is about, a JSON object as package involved makes it; nil
	// if nobody asks for it.
	Involved []byte
	// NamespaceLabels are the labels of the object's namespace, as of when the record was read or came back from disk;
	// nil if nobody asks for them. They choose topics and subjects, and are not sent.
	NamespaceLabels map[string]string
	// Received is when the exporter read the record.
	Received time.Time
	// FinalStateUnknown marks a delete that no watch saw (cache.DeletedFinalStateUnknown).
	FinalStateUnknown bool
	// Snapshot is the comparison that the record belongs to, nil for a record of the watch.
	Snapshot *Snapshot
	// Sink names the only sink that the record is for; "" means all.
	Sink string
	// Epoch is the history that the record was read from, as NewEpoch names it; "" is the first history of the
	// exporter's cluster.
	Epoch string
	// Filtered marks a record that the configuration filters out. It is not sent, but moves the position.
	Filtered bool
	// Ignored marks an update without a difference that matters. It goes only to sinks that were told another state
	// last, or none.
	Ignored bool
	// Remarks say what was done to the record for one sink; nil means nothing.
	Remarks *Remarks
	// Replay is set on a dead letter that is sent to Sink again. Such a record never goes to disk: whoever waits for it
	// is in memory, too.
	Replay *Replay
	// DuringSnapshot marks an update that came while a snapshot was read: it may be the first that a sink hears of the
	// object.
	DuringSnapshot bool
	// Withheld, if not "", is why no sink may have the record. A note takes its place, and its object, if there is one,
	// becomes a dead letter.
	Withheld string
	// Keep says that the object is kept as it is delivered, to be the Before of the next record.
	Keep bool
	// Form tells by which rules the object of a record from disk was cut and redacted; "" if not known.
	Form string
	// Last marks the last of a snapshot's records that are of objects.
	Last bool
	// Given, if not "", is the version up to which the sink has everything of the stream once it has this record.
	Given string
}

// Unreadable is the reason of a withheld record, or of a gap of a stream, if what the API server sent cannot be read.
// Such a record has no object.
const Unreadable = "unreadable"

// overhead approximates the bytes that a Record takes beside its object: the struct, and its place in queue and ledger.
const overhead = 384

// Size is the memory in bytes that the record holds while it is queued.
func (r *Record) Size() int {
	return overhead + len(r.Object) + len(r.Before) + len(r.Actor) + len(r.Involved)
}

// Keeps returns what is kept of the object after the record, nil for nothing. If changed is false, what was kept stays:
// the record was not sent, or is for one sink and says nothing of the others.
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
	// Trimmed are the paths that were cut to make the record fit, joined by commas; "" is none.
	Trimmed string
	// BeforeOmitted says that the record was sent without its Before, to make it fit. A delete was sent without the
	// last state of its object; the record still has it, since it chooses the topic or subject.
	BeforeOmitted bool
	// Replayed says what a dead letter is worth that is sent again; "" is an ordinary record.
	Replayed Replayed
	// Rejected, of a note, is why the sink has not got the record: the Reason of a sink.RejectedError, or Withheld.
	Rejected string
	// Letter, of a note, is the id of the dead letter that keeps the record; "" is none.
	Letter string
	// Proof, of a Resolved record, is that of an earlier one; nil if there is none.
	Proof *Proof
}

// LeftOut names what the record was sent without; "" is nothing.
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
	// History is a state that a newer one has replaced, or that of an object that is gone. Consumers that keep states
	// skip it.
	History Replayed = "history"
)

// Replay is the request to send a dead letter again.
type Replay struct {
	Letter string // its id
	Force  bool   // send it even if it is History
	// Done is told what became of it, where nil means delivered without leftOut. It returns at once. The first call
	// counts; others may follow.
	Done func(leftOut string, err error)
}

// An epoch is one history of one cluster: the uid of its namespace kube-system and, in every history but the first that
// was read, "~" and a name. A restored etcd assigns versions a second time, to other states of the same objects, so uid
// and version alone do not identify a state.
const epochSeparator = '~'

// NewEpoch is the epoch of a history of the cluster; found is when it was found, in milliseconds since 1970.
func NewEpoch(clusterUID string, found int64) string {
	return clusterUID + string(epochSeparator) + strconv.FormatInt(found, 36)
}

// EpochFound is when the history was found; zero for the first one of a cluster.
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

// SameCluster says whether the Cluster of an ID may be that of the uid: an ID has eight characters of it.
func SameCluster(ofID, uid string) bool { return ClusterOf(ofID) == uid[:min(len(uid), 8)] }

// appendClusterOfID appends the epoch as it is in an id: the first eight characters of the uid, and the history's name.
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
