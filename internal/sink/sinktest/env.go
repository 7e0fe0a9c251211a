package sinktest

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// Env is one log and what can be done to it. The suite calls its functions from the test's goroutine, except for Cut
// and the function that Stall returns. Sink and Messages are needed; a nil fault skips the tests that need it.
type Env struct {
	// Sink returns a new sink on the log, not opened, as a restarted process would make it.
	Sink func(t *testing.T) sink.Sink
	// Messages returns all that a reader who knows nothing of the sink finds in the log, oldest first.
	Messages func(t *testing.T) []Stored
	// Destination gives the destination of the message with the number, counted from 0; nil is "" for all.
	Destination func(number int) string

	// Partitioned says that the log keeps the order of messages with the same Key only, not of all.
	Partitioned bool
	// SkipsTombstones says that a message without a value leaves nothing in the log.
	SkipsTombstones bool
	// Pairs says that the sink is given records of several messages, such as deletes with tombstones, which are durable
	// together or not at all.
	Pairs bool
	// Fenced says that of two sinks that are open on the log one is kept out.
	Fenced bool
	// SeesLoss says that a Write after Truncate or Recreate fails, on a sink that was open meanwhile.
	SeesLoss bool
	// TooLarge is the size of a value that is rejected, 0 if there is none.
	TooLarge int
	// MaxValue is the size of the largest value that the log is tried with, 0 for 1 MiB.
	MaxValue int
	// Prompt is how soon a call must return when its context has ended, 0 for a minute.
	Prompt time.Duration
	// Leaks lists goroutines of the environment that may outlive a sink, such as those of a server in this process.
	Leaks []goleak.Option

	// Crash releases what the kernel would release if the process of the open sink were killed, and flushes nothing.
	// The sink is not used after it. nil means that forgetting a sink is crash enough: the suite closes it at the
	// end of the test.
	Crash func(s sink.Sink)
	// Foreign puts something into the log that kubecdc did not write.
	Foreign func(t *testing.T)
	// Cut breaks the connections that exist now. It may be called by any goroutine.
	Cut func()
	// Stall makes the transport take nothing, as a full disk or an unreachable broker, until resume is called.
	Stall func(t *testing.T) (resume func())
	// Truncate makes the log lose its newest messages, at least one and not all.
	Truncate func(t *testing.T)
	// Recreate deletes the log and, where a sink would not create it, makes it again, empty.
	Recreate func(t *testing.T)
}

// Stored is one message as a reader finds it in the log.
type Stored struct {
	ID          string
	Value       []byte // nil for a tombstone
	Destination string // not compared if empty
	// Headers has all headers of the message, kubecdc's own among them; nil where the transport has none.
	Headers []sink.Header
}
