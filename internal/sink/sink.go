package sink

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Sink is one destination. Its methods are called one at a time, not always by the same goroutine: Open first, then
// Write any number of times, Close last; after an error of Write, Open again.
type Sink interface {
	// Open connects, creates what is missing if it is allowed to, and passes at.After the ids of the messages that the
	// sink's own log holds after the mark, oldest first among those of one key. They were delivered, but a crash came
	// before that was saved; they will not be written again. There may be any number of them, so Open keeps none (I6).
	// After an error the ids count for nothing.
	//
	// Open closes a sink that is open first. It blocks and retries what the transport can mend for as long as ctx
	// lives. It returns a *PermanentError if only a person can help, and a *LostError if the log ends before the mark;
	// the sink is open then, at its log's end.
	Open(ctx context.Context, at Opening) error

	// Write makes the batch durable, in its order, and returns the mark after its last message. It returns nil only
	// when every message would survive a crash of the exporter (I1). It retries what the transport can mend, without
	// reordering and without writing twice, for as long as ctx lives.
	//
	// An empty batch writes nothing and returns the mark of the log's end, which is never "". The caller saves it
	// before the first record.
	//
	// Of a batch that fails, a prefix may have been written; Open at the last mark tells which. In a partitioned log it
	// is a prefix of each object's messages, wherever they go, and has a frame only if it has everything of its
	// resource before it.
	//
	// A *RejectedError names the one message that the sink will never take: the messages before it are durable, as the
	// returned mark says, and none after it was written. A *PermanentError is as for Open. A *LateError says that Open
	// read its log too early: the caller begins anew. After any other error the caller opens again.
	//
	// Adjacent messages of one ID are one record, such as a delete and its tombstone. After any failure, all of them or
	// none count as durable: Open passes their ID, once or once for each, only if the log holds them all. If one of
	// them is rejected, none is written.
	//
	// The batch and all that it points at belong to the sink until Write returns, and not afterwards.
	Write(ctx context.Context, batch []Message) (Mark, error)

	// Close releases everything; the sink can be opened again. It is safe on a sink that is not open.
	Close(ctx context.Context) error
}

// Opening is what a sink is opened with.
type Opening struct {
	// Mark is the saved mark. An empty one is that of a new sink: what the log holds already is not its own, is left
	// alone, and is not passed to After.
	Mark  Mark
	After Tail
	// Again says that the same sink was open at the mark before, and that only what its last Write left in doubt is
	// looked for. Anything else that has come since then is a *LateError.
	Again bool
}

// Tail is called whenever Open begins to read what is after the mark. It returns a function that takes the ids from
// there on, one at a time. What was taken before counts for nothing then.
type Tail func() (found func(id string))

// Rereader is a Sink that can read its whole log again.
type Rereader interface {
	// Reread passes the ids of all messages in the log to each, oldest first among those of one key, and ends with the
	// first error of each. It may begin a partition anew. It is called between Open and the first Write.
	Reread(ctx context.Context, each func(id string) error) error
}

// Announcer is a Sink whose Open reads only the places in the mark, such as partitions, and which finds new ones while
// it writes.
type Announcer interface {
	// Announce makes sure of the places that the messages are for. If some are new, it returns a function that adds
	// them to a mark, which the caller saves before it passes the messages to Write. It is called like Write, and its
	// errors are those of Write.
	Announce(ctx context.Context, messages []Message) (add func(Mark) (Mark, error), err error)
}

// Checker is a Sink that can look at its destination without changing it. The note is what a person may want to know
// although nothing is wrong, or "".
type Checker interface {
	Check(ctx context.Context) (note string, err error)
}

// Keeper is a Sink that removes old parts of its log by itself.
type Keeper interface {
	// Keep says which mark is saved. The next Open asks for what is after it, so the sink must not remove that before
	// it is told of another mark. It is called like Write.
	Keep(saved Mark)
}

// LargestObject is about the size in bytes of the largest object that an API server stores: etcd takes requests of 1.5
// MiB.
const LargestObject = 1536 << 10

// Mark is a sink's place in its own log, in a format that only the sink reads. "" is before everything.
type Mark string

// Message is one encoded record.
type Message struct {
	ID              string // change.ID as text, the header kubecdc-id
	Op              string // change.Op as text, the header kubecdc-op
	ResourceVersion string // the header kubecdc-rv
	Destination     string // the topic or subject; "" if the sink has only one place
	Reason          string // of the comparison that the message frames, as change.Reason; not on the wire
	Limited         bool   // that comparison is of a part of the objects; not on the wire
	Key             []byte // the message key, if the sink has such a thing
	KeySchema       uint32 // the id of a schema in a registry with which the key begins, 0 if there is none
	Partition       []byte // chooses the partition, if that is not the key
	Headers         []Header
	Value           []byte    // nil is a tombstone
	Time            time.Time // when the exporter received the record
}

// Size is about how many bytes the message takes on the wire.
func (m *Message) Size() int {
	n := len(m.ID) + len(m.Op) + len(m.ResourceVersion) + len(m.Destination) + len(m.Key) + len(m.Value)
	for _, h := range m.Headers {
		n += len(h.Name) + len(h.Value)
	}
	return n
}

// Object is the part of the id that names the object in any history of the cluster, "resource/namespace/name" and a
// slash. The name is empty if the message is of no object.
func (m *Message) Object() string {
	_, id, found := strings.Cut(m.ID, "/")
	if !found {
		return m.ID
	}
	end := 0
	for range 3 {
		slash := strings.IndexByte(id[end:], '/')
		if slash < 0 {
			return id
		}
		end += slash + 1
	}
	return id[:end]
}

// Header is one header of a message.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// The headers that every message carries on transports that have headers.
const (
	HeaderID              = "kubecdc-id"
	HeaderOp              = "kubecdc-op"
	HeaderResourceVersion = "kubecdc-rv"
)

// OpEnded is the header kubecdc-op of a message without id and value: its key is not used any more.
const OpEnded = "ended"

// FramesSuffix ends the name of a topic with the frames of another one. No resource, namespace or group has an
// underscore in its name, so no object goes there.
const FramesSuffix = "_frames"

// OpState is the header kubecdc-op of the messages of a log of the state.
const OpState = "state"

// HeaderMark begins the names of the headers that say what was done to a record: trimmed, the paths that were cut,
// joined by commas; beforeomitted, "true"; replayed, a change.Replayed.
const HeaderMark = "kubecdc-"

// RetryFunc is told of each attempt that a sink repeats, with the error and a short reason for a metric's label, such
// as "disconnected" or "timeout".
type RetryFunc func(reason string, err error)

// Schema identifies a schema in a registry.
type Schema struct {
	Subject string
	ID      uint32
}

// Stored is one message as a sink's log has it, for those who read it back. It is valid until the reader goes on.
type Stored struct {
	Place       string // where it is, for people: "topic k8s.pods partition 0 offset 12"
	Destination string // the topic or subject; "" if the sink has only one place
	Partition   int32  // of the topic
	Row         string // identifies the key in its topic or bucket; "" if more than the newest message of a key is kept
	Key         []byte // the message key, if the sink has such a thing
	Headers     []Header
	Value       []byte    // nil is a tombstone
	Time        time.Time // when the log took it; zero if the log does not say
	Erases      bool      // it removes its key from a table
}

// Header is the value of the last header with the name, "" if there is none.
func (s *Stored) Header(name string) string {
	for i := len(s.Headers) - 1; i >= 0; i-- {
		if s.Headers[i].Name == name {
			return s.Headers[i].Value
		}
	}
	return ""
}

// Start says where a reader begins. The zero value is the beginning of the log.
type Start struct {
	End   bool      // after everything that is there
	Since time.Time // with what the log took from then on, if it has times; zero is everything
}

// Reader reads a log as a consumer does, and changes nothing. It is for one goroutine at a time.
type Reader interface {
	// Read passes each message to each that the log holds after what was read before, up to its end at the moment, and
	// returns. Messages of one key are in the order of the log. An error of each ends it and is returned as it is.
	Read(ctx context.Context, each func(*Stored) error) error
	// Close releases everything.
	Close() error
}

// Judge checks a message in a log before anything is written to it. It returns a *ForeignError for a message of another
// cluster, and nil for one of ours, and for what kubecdc did not write.
type Judge func(*Stored) error

// PermanentError is a failure that only a person can mend: wrong credentials, a missing permission, a configuration
// that contradicts the broker's. It stops this sink only, which is opened again minutes later; the run ends when all
// sinks are stopped. Fenced says that another writer has taken the sink over: to open it again would fence that one, so
// it stays stopped until the next start.
type PermanentError struct {
	Err    error
	Fenced bool
}

func (e *PermanentError) Error() string { return e.Err.Error() }
func (e *PermanentError) Unwrap() error { return e.Err }

// Is makes a fenced error match errFenced.
func (e *PermanentError) Is(target error) bool { return target == errFenced && e.Fenced }

var errFenced = errors.New("another writer has taken it over")

// IsFenced says whether another writer has taken over a sink. err may join the errors of several sinks.
func IsFenced(err error) bool { return errors.Is(err, errFenced) }

// Permanent returns a *PermanentError with the text.
func Permanent(format string, args ...any) error {
	return &PermanentError{Err: fmt.Errorf(format, args...)}
}

// Ended is the error of a call whose context has ended; last is the error of its last attempt, or nil.
func Ended(ctx context.Context, verb string, last error) error {
	switch over := ctx.Err(); {
	case last == nil, errors.Is(last, over):
		return fmt.Errorf("%s: %w", verb, over)
	default:
		return fmt.Errorf("%s: %w: the last attempt failed: %w", verb, over, last)
	}
}

// Bell wakes the goroutine that waits for it, once, however often it was rung.
type Bell chan struct{}

// NewBell returns a Bell that was not rung.
func NewBell() Bell { return make(Bell, 1) }

// Ring wakes the goroutine. It returns at once.
func (b Bell) Ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}

// Pause waits for d, until woken, or until ctx ends. It returns false if ctx has ended.
func Pause(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// RejectedError names a message that the sink will never take, such as one above the broker's size limit.
type RejectedError struct {
	Index  int    // in the batch; the messages before it are durable
	Reason string // short, for a metric's label: "too_large", "invalid", "topic"
	Err    error
	// NoPlace says that nothing can be written to the message's Destination, which was chosen by the object, such as by
	// its namespace or a label. A note for the same Destination would be rejected, too.
	NoPlace bool
}

func (e *RejectedError) Error() string { return fmt.Sprintf("message %d rejected: %v", e.Index, e.Err) }
func (e *RejectedError) Unwrap() error { return e.Err }

// LateError says that something came into the log after Open and before the first message of this writer, or directly
// behind that message: an earlier exporter had sent it before it was killed, and a slow network brought it late, or
// another exporter writes. So Open has not passed all ids, and nothing that was concluded from them counts: the caller
// begins anew, as after a crash.
type LateError struct{ Err error }

func (e *LateError) Error() string { return e.Err.Error() }
func (e *LateError) Unwrap() error { return e.Err }

// LostError says that a sink's log no longer holds what it had acknowledged: it was truncated, deleted or made again.
type LostError struct {
	Log  string // which log: "stream K8S", "file /var/log/changes.ndjson"
	Want string // the place that the mark names
	Have string // where the log ends
}

func (e *LostError) Error() string {
	return fmt.Sprintf("%s lost acknowledged records: it ends at %s, before the saved mark %s", e.Log, e.Have, e.Want)
}

// ForeignError says that a log holds a record of another cluster.
type ForeignError struct {
	Place   string // of the record: "topic k8s.pods partition 0 offset 12"
	Cluster string // the other cluster's name in its configuration, "" if the record does not say
	UID     string // the first eight characters of the uid of its namespace kube-system, as in ids
	Ours    string // the name of our cluster
	Same    bool   // it was written under our name, or may have been
}

func (e *ForeignError) Error() string {
	if e.Same {
		return fmt.Sprintf("%s is a record of another cluster, uid %s, which has our name %q: each would delete the other's objects for consumers: "+
			"give each cluster a name of its own with the key cluster; if that cluster is gone for good, delete what it has written, or choose another name", e.Place, e.UID, e.Ours)
	}
	return fmt.Sprintf("%s is a record of another cluster, %q, uid %s, where ours is %q", e.Place, e.Cluster, e.UID, e.Ours)
}
