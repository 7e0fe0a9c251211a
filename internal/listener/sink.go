package listener

import (
	"context"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/sink"
)

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
	// DeadLetters keep what the sink will never take; nil loses it but for the note on the wire.
	DeadLetters DeadLetters
	Oversize    Oversize
	Gate        Gate // nil admits all
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
