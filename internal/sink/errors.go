package sink

import "fmt"

// PermanentError is a failure that only a person can mend: wrong credentials, a missing permission, a configuration
// that contradicts the broker's. The sink stops with it, alone: it is opened again minutes later, and the run ends when
// no other is left. Fenced says that another writer has taken the sink over: to open it again would only end the other
// one, so it stays stopped until the next start.
type PermanentError struct {
	Err    error
	Fenced bool
}

func (e *PermanentError) Error() string { return e.Err.Error() }
func (e *PermanentError) Unwrap() error { return e.Err }

// RejectedError names a message that the sink will never take, such as one above the broker's size limit.
type RejectedError struct {
	Index  int    // in the batch; the messages before it are durable
	Reason string // short, for a metric's label: "too_large", "invalid", "topic"
	Err    error
	// NoPlace says that nothing can be written to the message's own destination, which data chose, so neither can a
	// note that has the same one.
	NoPlace bool
}

func (e *RejectedError) Error() string { return fmt.Sprintf("message %d rejected: %v", e.Index, e.Err) }
func (e *RejectedError) Unwrap() error { return e.Err }

// LateError says that something came into the log after Open and before the first message of this writer: what an
// earlier exporter had sent when it was killed, and a slow network has brought late, or what another one writes. What
// Open gave was not all, so whatever was concluded from it counts for nothing: the caller begins anew, as after a
// crash.
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
	Cluster string // the other cluster's name in its configuration, "" where the record does not say
	UID     string // what ids say of the uid of its namespace kube-system: the first eight characters
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
