package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Actor is what is told of who asked for a change: the data of the event.
type Actor struct {
	Certainty    Certainty `json:"certainty"`
	Op           string    `json:"op"`
	Verb         string    `json:"verb"`
	Subresource  string    `json:"subresource,omitempty"`
	AuditID      string    `json:"auditID,omitempty"`
	User         User      `json:"user"`
	Impersonated *User     `json:"impersonated,omitempty"`
	UserAgent    string    `json:"userAgent,omitempty"`
	SourceIPs    []string  `json:"sourceIPs,omitempty"`
	Decision     string    `json:"decision,omitempty"`
	Reason       string    `json:"reason,omitempty"`
	Code         int       `json:"code"`
	Requested    string    `json:"requested"`
	Completed    string    `json:"completed"`
	Cut          []string  `json:"cut,omitempty"`
}

// attributes are the event's, beside those that every event has, and its data.
type attributes struct {
	Subject         string `json:"subject"`
	Group           string `json:"group"`
	Version         string `json:"version"`
	Resource        string `json:"resource"`
	Namespace       string `json:"namespace,omitempty"`
	Name            string `json:"name"`
	UID             string `json:"uid"`
	ResourceVersion string `json:"resourceversion,omitempty"`
	Change          string `json:"change,omitempty"`
	Data            Actor  `json:"data"`
}

// maxRecord is how many bytes the event of one actor has at most. It has room for a name of 5,000 characters, however
// they are escaped.
const maxRecord = 256 << 10

// Object is the stream that an answer is of.
type Object struct {
	Stream *change.Stream
	// Selected says that the stream's watch has a selector: an update may be told as added or as deleted.
	Selected   bool
	ClusterUID string
	Epoch      string // of the stream's position; "" is the first history of the cluster
}

// Record is what is told of the answer to the sink. It is false where the event would be too large.
func (e *Event) Record(a Answer, of Object, sink string) (*change.Record, bool) {
	resource := &of.Stream.Resource
	event := attributes{
		Subject: resource.Path(a.Key.Namespace) + "/" + a.Key.Name, Group: resource.Group, Version: resource.Version,
		Resource: resource.Name, Namespace: a.Key.Namespace, Name: a.Key.Name, UID: a.UID, ResourceVersion: a.Version,
		Change: a.change(of), Data: e.actor(&a),
	}
	if !e.Completed.After(change.EpochFound(of.Epoch)) { // it may be of the history before
		event.Change, event.Data.Certainty = "", Possible
	}
	text, fits := event.encode()
	if !fits {
		return nil, false
	}
	stream := change.Actors()
	return &change.Record{
		Stream: &stream, Op: change.Actor, Key: a.Key, UID: e.identity(&a), ResourceVersion: a.Version, Object: text, Sink: sink,
	}, true
}

// identity tells the record apart from all others of its object. Who sends a request may choose its audit id, so it is
// the hash of everything that is told (I8).
func (e *Event) identity(a *Answer) string {
	told, err := json.Marshal(e.actor(a))
	if err != nil { // there is nothing in it that cannot be written
		told = []byte(err.Error())
	}
	sum := sha256.Sum256(append(told, a.UID...))
	return hex.EncodeToString(sum[:16])
}

// change is the id of the change that a watch tells of the state. A delete has a version of its own, which no answer
// names; whether a selector has made something else of an update only the watch knows; and a write that has changed
// nothing is answered with a state that may be one of a create.
func (a *Answer) change(of Object) string {
	if a.Op == change.Deleted || of.Selected || a.Certainty != Proven {
		return ""
	}
	rec := change.Record{Stream: of.Stream, Op: a.Op, Key: a.Key, UID: a.UID, ResourceVersion: a.Version, Epoch: of.Epoch}
	return rec.ID(of.ClusterUID).String()
}

func (e *Event) actor(a *Answer) Actor {
	return Actor{
		Certainty: a.Certainty, Op: a.Op.String(), Verb: e.Verb, Subresource: e.Object.Subresource, AuditID: e.ID,
		User: e.User, Impersonated: e.Impersonated, UserAgent: e.UserAgent, SourceIPs: e.SourceIPs,
		Decision: e.Annotations["authorization.k8s.io/decision"], Reason: e.Annotations["authorization.k8s.io/reason"],
		Code: e.Status.Code, Requested: moment(e.Received), Completed: moment(e.Completed),
	}
}

func moment(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000000Z") }

// encode leaves out what is least needed, and says so, until the event is small enough.
func (a *attributes) encode() (text []byte, fits bool) {
	d := &a.Data
	cuts := []struct {
		name string
		cut  func()
	}{
		{"", func() {}},
		{"auditID", func() { d.AuditID = "" }},
		{"userAgent", func() { d.UserAgent = "" }},
		{"sourceIPs", func() { d.SourceIPs = nil }},
		{"reason", func() { d.Reason = "" }},
		{"groups", func() { d.eachUser(func(u *User) { u.Groups = nil }) }},
		{"user", func() { d.eachUser(func(u *User) { u.Name, u.UID = hashed(u.Name), hashed(u.UID) }) }},
	}
	for _, c := range cuts {
		if c.cut(); c.name != "" {
			d.Cut = append(d.Cut, c.name)
		}
		var err error
		if text, err = json.Marshal(a); err == nil && len(text) <= maxRecord {
			return text, true
		}
	}
	return nil, false
}

// eachUser changes the users, which are the event's until then.
func (d *Actor) eachUser(change func(*User)) {
	change(&d.User)
	if d.Impersonated != nil {
		changed := *d.Impersonated
		change(&changed)
		d.Impersonated = &changed
	}
}

// hashed stands for a name that is too long: a part of it would be another name.
func hashed(name string) string {
	const most = 1 << 10
	if len(name) <= most {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return "%sha256-" + hex.EncodeToString(sum[:])
}
