package audit

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/scan"
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
	told, _ := json.Marshal(e.actor(a)) // there is nothing in it that cannot be written
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

// Certainty is how sure it is that the user of a request made the state that the request was answered with.
type Certainty string

const (
	// Proven is that nobody else can have made it.
	Proven Certainty = "proven"
	// Likely is that the object says so: the newest entry of its managedFields is the request's manager, at a second
	// within the request. Somebody else may have used the same manager in the same second.
	Likely Certainty = "likely"
	// Possible is that the request was answered with the state. A write that changes nothing, and a second delete, are
	// answered with what somebody else has made.
	Possible Certainty = "possible"
)

// Outcome is what became of an event.
type Outcome string

const (
	Told      Outcome = "told"      // it has answers
	Ignored   Outcome = "ignored"   // it was to change nothing: a read, a failure, a dry run, another stage
	Unchanged Outcome = "unchanged" // a write that has changed nothing, as its precondition proves
	Unknown   Outcome = "unknown"   // it may have changed an object, and does not say which one, or to what
)

// Answer is one state of an object that a request was answered with.
type Answer struct {
	Key change.Key
	UID string
	// Version of the state. It is "" of a delete: the answer does not have the version of that.
	Version string
	// Op is how a watch tells of the state that has no selector: Added, Updated or Deleted.
	Op        change.Op
	Certainty Certainty
}

// Judge says which states of which objects the event's user may have made, and how sure that is.
func Judge(e *Event) ([]Answer, Outcome) {
	if e.Stage != "ResponseComplete" || !e.writes() || e.isDry() {
		return nil, Ignored
	}
	body, _ := scan.Fields(e.Response)
	switch {
	case e.Status.Code >= 300 && e.Status.Code < 500:
		return nil, Ignored
	case e.Status.Code < 200 || e.Status.Code >= 500: // it may have been done all the same
		return nil, Unknown
	case body == nil || !slices.Contains(answering(), e.Object.Subresource):
		return nil, Unknown
	case e.Verb == verbDeleteCollection:
		return e.deleted(body)
	case scan.TextOf(body["kind"]) == "Status" && scan.TextOf(body["apiVersion"]) == "v1": // of no custom resource
		return e.removed(body)
	}
	return e.wrote(body)
}

// answering are the subresources that answer with uid and version of their object. Others answer with something else.
func answering() []string { return []string{"", "status", "scale"} }

func (e *Event) writes() bool {
	return slices.Contains([]string{verbCreate, verbUpdate, verbPatch, verbDelete, verbDeleteCollection}, e.Verb)
}

// IsBrief says whether the event is of a write that the API server ends by itself: an exec lasts as long as its client.
func (e *Event) IsBrief() bool {
	return e.writes() && slices.Contains(answering(), e.Object.Subresource)
}

// removed is the delete that was answered by a Status with the uid: the object is gone when that is said.
func (e *Event) removed(body map[string]json.RawMessage) ([]Answer, Outcome) {
	details, _ := scan.Fields(body["details"])
	uid, name := scan.TextOf(details["uid"]), scan.TextOf(details["name"])
	if e.Verb != verbDelete || e.Object.Subresource != "" || scan.TextOf(body["status"]) != "Success" || uid == "" || name != e.Object.Name {
		return nil, Unknown
	}
	return []Answer{{e.key(name), uid, "", change.Deleted, Proven}}, Told
}

// key is the one of the object of the request. A namespace stands in itself there, and in no namespace elsewhere.
func (e *Event) key(name string) change.Key {
	if e.Object.Group == "" && e.Object.Resource == "namespaces" {
		return change.Key{Name: name}
	}
	return change.Key{Namespace: e.Object.Namespace, Name: name}
}

// deleted are the objects of a deletecollection. Somebody else may have deleted any of them meanwhile.
func (e *Event) deleted(body map[string]json.RawMessage) ([]Answer, Outcome) {
	var items []json.RawMessage
	if json.Unmarshal(body["items"], &items) != nil || e.Object.Subresource != "" {
		return nil, Unknown
	}
	var answers []Answer
	for _, item := range items {
		body, _ := scan.Fields(item)
		if m, found := metadataIn(body); found {
			answers = append(answers, Answer{m.key, m.uid, "", change.Deleted, Possible})
		}
	}
	if len(answers) == 0 {
		return nil, Unchanged
	}
	return answers, Told
}

// wrote is the state that a write, or a delete, was answered with.
func (e *Event) wrote(body map[string]json.RawMessage) ([]Answer, Outcome) {
	m, found := metadataIn(body)
	if !found || e.Object.Name != "" && m.key != e.key(e.Object.Name) {
		return nil, Unknown
	}
	certainty := e.certainty(&m)
	switch {
	case e.Status.Code == 201 && e.Object.Subresource == "" && e.Verb != verbDelete: // a state that nobody else can have made
		return []Answer{{m.key, m.uid, m.version, change.Added, Proven}}, Told
	case e.Verb == verbDelete && !m.deleting: // of Services and some others the last state is the answer
		return []Answer{{m.key, m.uid, "", change.Deleted, Proven}}, Told
	case m.ends: // several may have removed the last finalizer at once
		return []Answer{{m.key, m.uid, "", change.Deleted, Possible}}, Told
	case certainty == "":
		return nil, Unchanged
	}
	return []Answer{{m.key, m.uid, m.version, change.Updated, certainty}}, Told
}

// certainty is how sure it is that the request made the state, "" where it did not.
func (e *Event) certainty(m *metadata) Certainty {
	if e.Verb != verbUpdate && e.Verb != verbPatch {
		return Possible
	}
	now, err := strconv.ParseUint(m.version, 10, 64)
	switch before := e.precondition(); {
	case err == nil && before != 0 && now > before:
		return Proven
	case err == nil && before != 0 && now == before:
		return ""
	case m.isBy(e):
		return Likely
	}
	return Possible
}

// metadata is what is read of an object's.
type metadata struct {
	key          change.Key
	uid, version string
	deleting     bool
	ends         bool // nothing keeps the object any more: no API server stores such a state
	managed      json.RawMessage
}

func metadataIn(body map[string]json.RawMessage) (metadata, bool) {
	all, _ := scan.Fields(body["metadata"])
	m := metadata{
		key: change.Key{Namespace: scan.TextOf(all["namespace"]), Name: scan.TextOf(all["name"])},
		uid: scan.TextOf(all["uid"]), version: scan.TextOf(all["resourceVersion"]),
		managed: all["managedFields"],
	}
	var finalizers []string
	var grace int64
	m.deleting = scan.TextOf(all["deletionTimestamp"]) != ""
	m.ends = m.deleting && listed(all["finalizers"], &finalizers) && len(finalizers) == 0 &&
		listed(all["deletionGracePeriodSeconds"], &grace) && grace == 0
	return m, m.key.Name != "" && m.uid != "" && m.version != ""
}

// listed reads a field that may be missing.
func listed(value json.RawMessage, into any) bool {
	return value == nil || json.Unmarshal(value, into) == nil
}

// isBy says whether the newest entries of managedFields are the request's, and of a second within it.
func (m *metadata) isBy(e *Event) bool {
	var entries []struct {
		Manager     string    `json:"manager"`
		Subresource string    `json:"subresource"`
		Time        time.Time `json:"time"`
	}
	if json.Unmarshal(m.managed, &entries) != nil || len(entries) == 0 {
		return false
	}
	newest := entries[0].Time
	for _, entry := range entries {
		newest = slices.MaxFunc([]time.Time{newest, entry.Time}, time.Time.Compare)
	}
	if newest.Before(e.Received.Truncate(time.Second)) || newest.After(e.Completed) {
		return false
	}
	// The manager is the name under which the API server notes what the request has set (KEP-555): the one that was
	// asked for, or the user agent's first word.
	agent, _, _ := strings.Cut(e.UserAgent, "/")
	manager := cmp.Or(e.query().Get("fieldManager"), agent)
	for _, entry := range entries {
		if entry.Time.Equal(newest) && (entry.Manager != manager || entry.Subresource != e.Object.Subresource) {
			return false
		}
	}
	return true
}

// precondition is the resourceVersion at which alone the API server was to write, 0 where the request does not say, or
// not so that every reader understands it. With "0" a write is unconditional (the API conventions, concurrency
// control).
func (e *Event) precondition() uint64 {
	if e.Verb == verbPatch && bytes.HasPrefix(e.Request, []byte("[")) {
		return tested(e.Request)
	}
	body, unique := scan.Fields(e.Request)
	metadata, both := scan.Fields(body["metadata"])
	for _, some := range []map[string]json.RawMessage{body, metadata} {
		for name := range some { // a strategic merge patch may tell what to do with the fields, as $patch and $retainKeys do
			both = both && !strings.HasPrefix(name, "$")
		}
	}
	if !unique || !both {
		return 0
	}
	return versionOf(metadata["resourceVersion"])
}

// tested is the version that a JSON Patch (RFC 6902) asks for or sets, where one operation alone touches it.
func tested(patch []byte) (version uint64) {
	var operations []json.RawMessage
	if json.Unmarshal(patch, &operations) != nil {
		return 0
	}
	for _, one := range operations {
		operation, unique := scan.Fields(one)
		switch path, from := scan.TextOf(operation["path"]), scan.TextOf(operation["from"]); {
		case !unique || operation["path"] == nil:
			return 0
		case !touchesVersion(path) && (operation["from"] == nil || !touchesVersion(from)):
			continue
		case version != 0 || path != versionPath || !slices.Contains([]string{"test", "add", "replace"}, scan.TextOf(operation["op"])):
			return 0
		}
		if version = versionOf(operation["value"]); version == 0 {
			return 0
		}
	}
	return version
}

const versionPath = "/metadata/resourceVersion"

// touchesVersion says whether the JSON Pointer (RFC 6901) may be of the version, or of what that stands in. The API
// server takes pointers without the first slash, too, and reads them from the second part on.
func touchesVersion(pointer string) bool {
	return !strings.HasPrefix(pointer, "/") || pointer == "/metadata" || strings.HasPrefix(pointer, versionPath)
}

func versionOf(value json.RawMessage) uint64 {
	version, err := strconv.ParseUint(scan.TextOf(value), 10, 64)
	if err != nil {
		return 0 // and not the largest one, where it is out of range
	}
	return version
}
