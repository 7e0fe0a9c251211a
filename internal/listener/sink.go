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

// due is a record on its way into the sink, in the form that this sink is given, and its place in the batch.
type due struct {
	*change.Record
	at    int
	whole *change.Record // as it was before something was cut from it; nil is that nothing was
	cuts  int            // so many of the sink's trims were tried
}

// outgoing is a batch as it goes to the sink: its messages, which record each of them is of, and which are patches. One
// goroutine uses it.
type outgoing struct {
	clusterUID string
	encoder    Encoder
	chain      *chain.Chain // nil where updates are whole objects
	messages   []sink.Message
	ends       []int // by record of the batch: how many messages it ends after
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

// encode makes the messages of the batch, up to the record whose format fails; a record may have several. The chain
// says which of them are patches.
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

// messageOf is what the sink would be given of the record, never as a patch. Of one that cannot be encoded it is the id
// alone.
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

// written tells the chain that the first n records of the batch are in the log, and no other.
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

// recordOf is the record that the message was made of, both as places in the last batch.
func (o *outgoing) recordOf(message int) int {
	return sort.Search(len(o.ends), func(i int) bool { return o.ends[i] > message })
}

// withoutBefore takes the state before away, where the message has one beside the object. Of a delete it may be all
// that there is. It returns nil where that makes nothing smaller.
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

// trim makes the object smaller by the next cut that takes something away. It returns nil where there is none.
func (d *due) trim(trims []Trim) *change.Record {
	for d.cuts < len(trims) {
		cut := trims[d.cuts]
		d.cuts++
		object, err := cut.Cut(d.Object)
		if err != nil || len(object) >= len(d.Object) {
			continue // nothing is there, or it is no JSON: what does not fit is kept whole
		}
		smaller := withRemarks(d.Record, func(m *change.Remarks) { m.Trimmed = strings.TrimPrefix(m.Trimmed+","+cut.Path, ",") })
		smaller.Object = object
		return smaller
	}
	return nil
}

// withoutState lets a delete go without the last state of its object, whatever speaks against that: it says all that
// readers need of it, and else the object would be there for them for ever. It returns nil for any other record.
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

// Observer is told what becomes of the records for a sink. Every field must be set; NopObserver has them all. The
// callbacks are called from the pipeline's goroutines, sometimes under its locks: they return at once and call nothing
// back.
type Observer struct {
	// Queued is told what a listener holds after that changed.
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
	// Dropped is told that a rejected record was not kept, since the sink's dead letters have reached their bound.
	Dropped func(sink string)
	// Trimmed is told of a durable record of which something was cut to make it fit; rec.Remarks say what.
	Trimmed func(sink string, rec *change.Record)
	// Committed is told that something is part of the saved state, and how long that took.
	Committed func(took time.Duration)
	// CommitFailed is told of a failed commit, which is tried again.
	CommitFailed func(err error)
	// Replayed is told of a dead letter that was sent again, nil, or why it was not.
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
	// Actors says that the sink takes records of who asked for a change.
	Actors bool
	// Narrow is what the sink's own rules leave of a record, which others share; it is Filtered where they leave
	// nothing. nil leaves it as it is.
	Narrow func(*change.Record) *change.Record
	Queue  fifo.Limit
	// Patches makes updates go out as patches (package chain), where that is proven to be right.
	Patches bool
	// Coalesce makes the queue hold the newest record of each object alone.
	Coalesce bool
	// Spool is how many bytes on disk, about, take what a full queue does not; 0 makes the streams wait. A queue that
	// coalesces goes there when its spill is triggered.
	Spool int64
	// Resync is how often each stream is compared with the server and given to the sink in full; 0 is never.
	Resync time.Duration
	// Resolved is how often at most the sink is told up to where it has all of a stream; 0 is never.
	Resolved time.Duration
	// Digest makes what is resolved say which objects the sink's log had at the one before.
	Digest bool
	// DeadLetters keep what the sink will never take; nil loses it but for the note on the wire.
	DeadLetters DeadLetters
	Oversize    Oversize
	Gate        Gate // nil admits all
	// Owner is the other task that is to have the resource, by kubectl's full name, from now on; 0 is none, and so is
	// nil.
	Owner func(resource string) int
	// DeletesLeft tells of the ends of the objects that the sink has of a stream which it is not given any more.
	DeletesLeft bool
}

// Encoder turns records into messages. One goroutine at a time uses it.
type Encoder interface {
	// Encode appends the record's messages to dst, at least one, all with the record's id. They are valid until Reset.
	// A *sink.RejectedError says that the record can never be encoded. Any other error is treated as one of the sink.
	// After an error dst is returned as it was.
	Encode(ctx context.Context, dst []sink.Message, rec *change.Record) ([]sink.Message, error)
	Reset()
}

// DeadLetters keep what a sink will never take, outside of the sink. *deadletter.Dir is one.
type DeadLetters interface {
	// Keep makes the record and the message that was made of it durable, and returns the letter's id, or "" where the
	// letters have reached their bound. The same state of an object is kept once. An error is worth another attempt.
	Keep(rec *change.Record, msg *sink.Message, rejected *sink.RejectedError) (id string, err error)
	// Claim notes durably that the letter is on its way to the sink. It is false where there is no such letter.
	Claim(id string) (found bool, err error)
	// Settle begins to find out which claimed letters the sink has: held is told ids of messages that it holds, and
	// end removes the letters whose events are among them, and gives the others back.
	Settle() (held func(id string), end func() error, err error)
}

// Obsolete is DeadLetters that give up the letter of a state when the sink has got that all the same.
type Obsolete interface {
	// Delivered returns the id of the letter that it has removed, or could not remove; "" is that there is none. It
	// is called for every record.
	Delivered(rec *change.Record) (id string, err error)
}

// Oversize is what becomes of a record that is too large for the sink. The zero value makes a dead letter of it.
type Oversize struct {
	Reject bool   // the sink stops
	Trims  []Trim // what is cut, one after the other, until it fits; where it never does it is a dead letter
}

// Trim is one cut.
type Trim struct {
	Path string
	// Cut returns the object without what is at the path.
	Cut func(object []byte) ([]byte, error)
}

// Gate says of which streams the sink's format can encode records now. A stream that has to wait is not read further
// for a while, and then it goes on for the other sinks, and this one misses it. It answers at once.
type Gate interface {
	Admits(stream *change.Stream) bool
	// Changed is closed when an answer may be another one than before it was asked for.
	Changed() <-chan struct{}
}
