package listener

import (
	"context"
	"errors"
	"sort"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/listener/chain"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// due is a record on its way into the sink, in the form for this sink, and its index in the batch.
type due struct {
	*change.Record
	at    int
	whole *change.Record // the record before something was left out; nil if nothing was
	cuts  int            // how many of the sink's Trims were tried
}

// outgoing encodes a batch: its messages, the record that each of them is of, and which are patches. One goroutine uses
// it.
type outgoing struct {
	clusterUID string
	encoder    Encoder
	chain      *chain.Chain // nil if updates are whole objects
	messages   []sink.Message
	ends       []int // by record of the batch: how many messages there are up to its last
}

func recordsOf(todo []due) []*change.Record {
	records := make([]*change.Record, len(todo))
	for at := range todo {
		records[at] = todo[at].Record
	}
	return records
}

func newOutgoing(s *Sink, clusterUID string) *outgoing {
	o := &outgoing{clusterUID: clusterUID, encoder: s.Encoder}
	if s.Patches {
		o.chain = chain.New()
	}
	return o
}

// encode makes the messages of the batch, up to a record that cannot be encoded; a record may have several. The chain
// decides which of them are patches.
func (o *outgoing) encode(ctx context.Context, todo []due) (messages []sink.Message, err error) {
	if o.chain == nil {
		return o.encodeAs(ctx, recordsOf(todo), asItIs)
	}
	o.chain.Begin()
	return o.encodeAs(ctx, recordsOf(todo), o.chain.Next)
}

func asItIs(rec *change.Record) *change.Record { return rec }

func (o *outgoing) encodeAs(ctx context.Context, batch []*change.Record, form func(*change.Record) *change.Record) (messages []sink.Message, err error) {
	o.encoder.Reset()
	o.messages, o.ends = o.messages[:0], o.ends[:0]
	for _, rec := range batch {
		if o.messages, err = o.encoder.Encode(ctx, o.messages, form(rec)); err != nil {
			break
		}
		o.ends = append(o.ends, len(o.messages))
	}
	return o.messages, err
}

// messageOf is the record's first message, never a patch. If the record cannot be encoded, the message has only its id.
func (o *outgoing) messageOf(ctx context.Context, rec *change.Record) (*sink.Message, error) {
	messages, err := o.encodeAs(ctx, []*change.Record{rec}, asItIs)
	var rejected *sink.RejectedError
	switch {
	case err == nil:
		return &messages[0], nil
	case errors.As(err, &rejected):
		return &sink.Message{ID: rec.ID(o.clusterUID).String()}, nil
	}
	return nil, err
}

// written tells the chain that the first n records of the batch are in the log, and no others.
func (o *outgoing) written(n int) {
	if o.chain != nil {
		o.chain.Wrote(n)
	}
}

// doubted tells the chain that nobody knows what is in the log.
func (o *outgoing) doubted() {
	if o.chain != nil {
		o.chain.Break()
	}
}

// encoded is how many records of the last batch have messages.
func (o *outgoing) encoded() int { return len(o.ends) }

// recordOf is the index of the record that the message was made of, by the message's index in the last batch.
func (o *outgoing) recordOf(message int) int {
	return sort.Search(len(o.ends), func(i int) bool { return o.ends[i] > message })
}

// withoutBefore leaves out Before, except from a delete, which may have nothing else. It returns nil if that does not
// make the message smaller.
func (o *outgoing) withoutBefore(ctx context.Context, rec *change.Record) *change.Record {
	if rec.Before == nil || rec.Op == change.Deleted {
		return nil
	}
	whole, err := o.messageOf(ctx, rec)
	if err != nil {
		return nil
	}
	size := whole.Size()
	bare := withRemarks(rec, func(m *change.Remarks) { m.BeforeOmitted = true })
	bare.Before = nil
	if message, err := o.messageOf(ctx, bare); err != nil || message.Size() >= size {
		return nil // the format has no place for it
	}
	return bare
}

// trim makes the object smaller by the next cut that has an effect. It returns nil if there is none.
func (d *due) trim(trims []Trim) *change.Record {
	for d.cuts < len(trims) {
		cut := trims[d.cuts]
		d.cuts++
		object, err := cut.Cut(d.Object)
		if err != nil || len(object) >= len(d.Object) {
			continue // nothing is at the path, or the object is no JSON
		}
		smaller := withRemarks(d.Record, func(m *change.Remarks) { m.Trimmed = strings.TrimPrefix(m.Trimmed+","+cut.Path, ",") })
		smaller.Object = object
		return smaller
	}
	return nil
}

// withoutState lets a delete go without the last state of its object, whatever the configuration says: readers need
// only the delete, and without it would keep the object for ever. It returns nil for any other record.
func withoutState(rec *change.Record) *change.Record {
	if rec.Op != change.Deleted || rec.Object == nil && rec.Before == nil || rec.Remarks != nil && rec.Remarks.BeforeOmitted {
		return nil
	}
	return withRemarks(rec, func(m *change.Remarks) { m.BeforeOmitted = true })
}

// withRemarks is a copy of the record with other remarks.
func withRemarks(rec *change.Record, set func(*change.Remarks)) *change.Record {
	remarked, remarks := *rec, change.Remarks{}
	if rec.Remarks != nil {
		remarks = *rec.Remarks
	}
	set(&remarks)
	remarked.Remarks = &remarks
	return &remarked
}

// Observer is told what becomes of a sink's records. Every field must be set; NopObserver has them all. The callbacks
// are called from the pipeline's goroutines, sometimes under its locks: they return at once and call nothing back.
type Observer struct {
	// Queued is told how much a sink's backlog holds, whenever that has changed.
	Queued func(sink string, backlog fifo.Levels)
	// Opened is told that a sink is open, and how many records after its mark were found in its log.
	Opened func(sink string, found int)
	// Written is told of a batch that is durable, and how long Write took.
	Written func(sink string, batch []*change.Record, took time.Duration)
	// Failed is told of a sink's error; the listener opens the sink again.
	Failed func(sink string, err error)
	// Stopped is told of a sink's error that only a person can mend. The sink is opened again now and then; the others
	// go on.
	Stopped func(sink string, err error)
	// Rejected is told of a record that the sink will never take, and why.
	Rejected func(sink string, rec *change.Record, reason string, err error)
	// Coalesced is told of records that newer ones of the same object have made superfluous.
	Coalesced func(sink string, records int)
	// NotKept is told why a dead letter could not be kept. It is tried again, and the sink waits for it.
	NotKept func(sink string, err error)
	// Dropped is told that a rejected record was not kept, since the sink has as many dead letters as it may.
	Dropped func(sink string)
	// Trimmed is told of a durable record from which something was left out to make it fit; rec.Remarks say what.
	Trimmed func(sink string, rec *change.Record)
	// Committed is told of a save, and how long it took.
	Committed func(took time.Duration)
	// CommitFailed is told of a failed save, which is tried again.
	CommitFailed func(err error)
	// Replayed is told of a dead letter that was to be sent again. err is nil if it was, or if it was not needed any
	// more.
	Replayed func(sink string, rec *change.Record, err error)
}

// NopObserver is an Observer that ignores everything.
func NopObserver() Observer {
	return Observer{
		Queued:    func(string, fifo.Levels) {},
		Opened:    func(string, int) {},
		Written:   func(string, []*change.Record, time.Duration) {},
		Failed:    func(string, error) {},
		Stopped:   func(string, error) {},
		Rejected:  func(string, *change.Record, string, error) {},
		Coalesced: func(string, int) {}, Committed: func(time.Duration) {}, CommitFailed: func(error) {},
		NotKept:  func(string, error) {},
		Dropped:  func(string) {},
		Trimmed:  func(string, *change.Record) {},
		Replayed: func(string, *change.Record, error) {},
	}
}

// Sink is one destination and what it wants.
type Sink struct {
	Name    string
	Target  sink.Sink
	Encoder Encoder
	// Wants says whether the sink takes the stream's records; nil is all.
	Wants func(*change.Stream) bool
	// Actors says that the sink takes the records of change.Actors.
	Actors bool
	// Narrow applies the sink's own rules to a record and returns a copy, Filtered if they leave nothing. nil leaves it
	// as it is.
	Narrow func(*change.Record) *change.Record
	Queue  fifo.Limit
	// Patches sends updates as patches (package chain), if that is proven to be right.
	Patches bool
	// Coalesce lets the queue hold only the newest record of each object.
	Coalesce bool
	// Spool is about how many bytes on disk take what does not fit into the queue; 0 makes the streams wait. A
	// coalescing queue spills when it is triggered.
	Spool int64
	// Resync is how often each stream is sent in full, after a comparison with the server; 0 is never.
	Resync time.Duration
	// Resolved is how often at most the sink gets a Resolved record of each stream; 0 is never.
	Resolved time.Duration
	// Digest adds to each Resolved record a Proof of the objects that the sink's log had at an earlier one.
	Digest bool
	// DeadLetters keep the records that the sink will never take; nil keeps none, so that only the note is left.
	DeadLetters DeadLetters
	Oversize    Oversize
	Gate        Gate // nil admits all
	// Owner is the other task that has the resource, by kubectl's full name, from now on; 0 or a nil func is none.
	Owner func(resource string) int
	// DeletesLeft sends deletes of the objects that the sink has of a stream that it is not given any more.
	DeletesLeft bool
}

// Encoder turns records into messages. One goroutine at a time uses it.
type Encoder interface {
	// Encode appends the record's messages to dst, at least one, all with the record's id. They are valid until Reset.
	// A *sink.RejectedError says that the record can never be encoded. Any other error counts as one of the sink. After
	// an error it returns dst as it was.
	Encode(ctx context.Context, dst []sink.Message, rec *change.Record) ([]sink.Message, error)
	Reset()
}

// DeadLetters keep what a sink will never take, outside of the sink. *deadletter.Dir is one.
type DeadLetters interface {
	// Keep makes the record and its message durable, and returns the letter's id, or "" if there are as many letters as
	// there may be. The same state of an object is kept once. After an error Keep is called again.
	Keep(rec *change.Record, msg *sink.Message, rejected *sink.RejectedError) (id string, err error)
	// Claim notes durably that the letter is on its way to the sink. found is false if there is no such letter.
	Claim(id string) (found bool, err error)
	// Settle begins to find out which claimed letters the sink has. The caller passes held the ids of the messages that
	// the sink holds, and then calls end, which removes the letters of these events, and unclaims the others.
	Settle() (held func(id string), end func() error, err error)
}

// Obsolete is DeadLetters that remove the letter of a state once the sink has got that state all the same.
type Obsolete interface {
	// Delivered returns the id of the letter that it has removed, or could not remove; "" if there is none. It is
	// called for every record that was delivered whole.
	Delivered(rec *change.Record) (id string, err error)
}

// Oversize is what becomes of a record that is too large for the sink. The zero value makes a dead letter of it.
type Oversize struct {
	Reject bool   // the sink stops
	Trims  []Trim // cuts, one after the other, until it fits; if it never does, it becomes a dead letter
}

// Trim is one cut.
type Trim struct {
	Path string
	// Cut returns the object without what is at the path.
	Cut func(object []byte) ([]byte, error)
}

// Gate says of which streams the sink's format can encode records now. While it does not admit a stream, the sink is
// not offered it, and goes on from its position afterwards. It answers at once.
type Gate interface {
	Admits(stream *change.Stream) bool
	// Changed returns a channel that is closed when answers may have changed since the call.
	Changed() <-chan struct{}
}
