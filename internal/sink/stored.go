package sink

import (
	"context"
	"time"
)

// Stored is one message as the log of a sink has it, for those who read it back. It is valid until the reader goes on.
type Stored struct {
	Place       string // where it lies, for people: "topic k8s.pods partition 0 offset 12"
	Destination string // the topic or subject; "" where the sink has one place only
	Partition   int32  // of the topic
	Row         string // its key, as the log has it, and where; "" where more than the newest of a key is kept
	Key         []byte // the message key, where the sink has such a thing
	Headers     []Header
	Value       []byte    // nil is a tombstone
	Time        time.Time // when the log took it; zero where the log does not say
	Erases      bool      // it takes its key out of a table
}

// Header is the value of the last header with the name, "" where there is none.
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
	End   bool      // after what is there
	Since time.Time // with what the log took then, where it knows; zero is everything
}

// Reader reads a log as a consumer does, and changes nothing. It is for one goroutine at a time.
type Reader interface {
	// Read hands each message on that the log holds after what was read before, up to the end that the log has while
	// Read runs, and returns. Within one key the order is the log's. An error of each ends it and is returned as it is.
	Read(ctx context.Context, each func(*Stored) error) error
	// Close releases everything.
	Close() error
}

// Judge looks at a message in a log that is about to be written to. It returns a *ForeignError for one of another
// cluster, and nil for ours and for what kubecdc did not write.
type Judge func(*Stored) error
