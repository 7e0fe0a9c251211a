package sink

import "fmt"

// PermanentError is a failure that only a person can mend: wrong credentials, a missing permission, a configuration
// that contradicts the broker's. The run ends with it.
type PermanentError struct{ Err error }

func (e *PermanentError) Error() string { return e.Err.Error() }
func (e *PermanentError) Unwrap() error { return e.Err }

// RejectedError names a message that the sink will never take, such as one above the broker's size limit.
type RejectedError struct {
	Index  int    // in the batch; the messages before it are durable
	Reason string // short, for a metric's label: "too_large", "invalid"
	Err    error
}

func (e *RejectedError) Error() string { return fmt.Sprintf("message %d rejected: %v", e.Index, e.Err) }
func (e *RejectedError) Unwrap() error { return e.Err }

// LostError says that a sink's log no longer holds what it had acknowledged: it was truncated, deleted or made again.
type LostError struct {
	Log  string // which log: "stream K8S", "file /var/log/changes.ndjson"
	Want string // the place that the mark names
	Have string // where the log ends
}

func (e *LostError) Error() string {
	return fmt.Sprintf("%s lost acknowledged records: it ends at %s, before the saved mark %s", e.Log, e.Have, e.Want)
}
