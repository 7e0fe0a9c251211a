package deadletter

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Letter is what is known of one record that a sink will never take.
type Letter struct {
	ID     string    `json:"id"`   // of the letter: the same object in the same version has the same
	Time   time.Time `json:"time"` // when the sink rejected it
	Sink   string    `json:"sink"`
	Reason string    `json:"reason"` // "too_large", "invalid"
	Error  string    `json:"error"`

	// The record.
	Event             string    `json:"event"` // the message's id
	Cluster           string    `json:"cluster"`
	ClusterUID        string    `json:"clusterUid"`
	Stream            string    `json:"stream"`
	Namespaced        string    `json:"streamNamespace,omitzero"` // of a stream that is of one namespace
	Group             string    `json:"group,omitzero"`
	Version           string    `json:"version"`
	Resource          string    `json:"resource"`
	Kind              string    `json:"kind"`
	ClusterScoped     bool      `json:"clusterScoped,omitzero"`
	Namespace         string    `json:"namespace,omitzero"`
	Name              string    `json:"name,omitzero"`
	UID               string    `json:"uid,omitzero"`
	ResourceVersion   string    `json:"resourceVersion"`
	Op                string    `json:"op"`
	Received          time.Time `json:"received"`
	FinalStateUnknown bool      `json:"finalStateUnknown,omitzero"`
	Beside            bool      `json:"beside,omitzero"` // as the record's
	// The record's, of the same names.
	Actor      json.RawMessage `json:"actor,omitempty"`
	Involved   json.RawMessage `json:"involved,omitempty"`
	Changed    json.RawMessage `json:"changed,omitempty"`
	ChangedCut bool            `json:"changedCut,omitzero"`
	Snapshot   *Snapshot       `json:"snapshot,omitempty"`
	// Form is by which rules the object was cut and redacted; "" is not known.
	Form string `json:"form,omitzero"`

	// The message.
	Destination string   `json:"destination,omitzero"`
	Key         []byte   `json:"key,omitempty"` // base64
	Headers     []Header `json:"headers,omitempty"`

	Body Body `json:"body"`
	// Value is the message's, nil for a tombstone, and Object and Before the record's, nil where it has none.
	Value  []byte `json:"-"`
	Object []byte `json:"-"`
	Before []byte `json:"-"`
}

// Snapshot is the reconcile that the record belongs to.
type Snapshot struct {
	ID     string        `json:"id"`
	Reason change.Reason `json:"reason"`
}

// Header is one header of the message.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Body says where in the bytes after the first line value, object and the object before are. A length of -1 is one
// that is nil.
type Body struct {
	Value    int    `json:"value"`            // bytes, from the first one on
	ObjectAt int    `json:"objectAt"`         // within the value, or after it
	Object   int    `json:"object"`           // bytes
	Before   int    `json:"before,omitempty"` // bytes, the last ones
	Sum      string `json:"sum"`              // SHA-256 of all of them, hexadecimal
}

// ObjectKey names the object.
func (l *Letter) ObjectKey() change.Key { return change.Key{Namespace: l.Namespace, Name: l.Name} }

// newLetter describes the record and the message that was made of it.
func newLetter(o *Options, rec *change.Record, msg *sink.Message, rejected *sink.RejectedError) *Letter {
	clusterUID := o.ClusterUID
	if rec.Epoch != "" {
		clusterUID = rec.Epoch
	}
	res := rec.Stream.Resource
	l := &Letter{
		ID: idOf(rec, clusterUID), Time: o.now().UTC(), Sink: o.Sink, Reason: rejected.Reason, Error: rejected.Err.Error(),
		Event: msg.ID, Cluster: o.Cluster, ClusterUID: clusterUID, Stream: rec.Stream.String(), Namespaced: rec.Stream.Namespace,
		Group: res.Group, Version: res.Version, Resource: res.Name, Kind: res.Kind, ClusterScoped: res.ClusterScoped,
		Namespace: rec.Key.Namespace, Name: rec.Key.Name, UID: rec.UID, ResourceVersion: rec.ResourceVersion, Op: rec.Op.String(),
		Received: rec.Received, FinalStateUnknown: rec.FinalStateUnknown, Beside: rec.Beside, Actor: rec.Actor, Involved: rec.Involved, Changed: rec.Changed, ChangedCut: rec.ChangedCut,
		Destination: msg.Destination, Key: msg.Key, Value: msg.Value, Object: rec.Object, Before: rec.Before,
	}
	if o.Form != nil {
		l.Form = o.Form(rec.Stream)
	}
	if rec.Snapshot != nil {
		l.Snapshot = &Snapshot{ID: rec.Snapshot.ID, Reason: rec.Snapshot.Reason}
	}
	for _, h := range msg.Headers {
		l.Headers = append(l.Headers, Header{h.Name, h.Value})
	}
	return l
}

// idOf is the same for all records that tell of the same state of an object, so that a state which a full snapshot
// tells again, or which comes again after a crash, is kept once. It is short enough for a command line.
func idOf(rec *change.Record, clusterUID string) string {
	id := rec.ID(clusterUID)
	if rec.Op.OfObject() {
		id.Snapshot = ""
		if rec.Op != change.Deleted {
			id.Op = change.Updated
		}
	}
	sum := sha256.Sum256([]byte(id.String()))
	return hex.EncodeToString(sum[:10])
}

// Record makes the letter's record anew, for its sink alone. The stream's name is the letter's.
func (l *Letter) Record(clusterUID string) *change.Record {
	rec := &change.Record{
		Stream: &change.Stream{
			Resource:  change.Resource{Group: l.Group, Version: l.Version, Name: l.Resource, Kind: l.Kind, ClusterScoped: l.ClusterScoped},
			Namespace: l.Namespaced,
		},
		Op: change.ParseOp(l.Op), Key: l.ObjectKey(), UID: l.UID, ResourceVersion: l.ResourceVersion, Object: l.Object, Before: l.Before,
		Received: l.Received, FinalStateUnknown: l.FinalStateUnknown, Beside: l.Beside, Actor: l.Actor, Involved: l.Involved, Changed: l.Changed, ChangedCut: l.ChangedCut, Sink: l.Sink, Form: l.Form,
	}
	if l.ClusterUID != clusterUID {
		rec.Epoch = l.ClusterUID
	}
	if l.Snapshot != nil {
		rec.Snapshot = &change.Snapshot{ID: l.Snapshot.ID, Reason: l.Snapshot.Reason}
	}
	return rec
}
