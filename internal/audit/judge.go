package audit

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

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
	Group, Resource string
	Key             change.Key
	UID             string
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
	body, _ := fields(e.Response)
	switch {
	case e.Status.Code >= 300 && e.Status.Code < 500:
		return nil, Ignored
	case e.Status.Code < 200 || e.Status.Code >= 500: // it may have been done all the same
		return nil, Unknown
	case body == nil || !slices.Contains(answering(), e.Object.Subresource):
		return nil, Unknown
	case e.Verb == verbDeleteCollection:
		return e.deleted(body)
	case isStatus(body):
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

// isStatus says whether the answer is no object. No custom resource has apiVersion v1.
func isStatus(body map[string]json.RawMessage) bool {
	return textOf(body["kind"]) == "Status" && textOf(body["apiVersion"]) == "v1"
}

// removed is the delete that was answered by a Status with the uid: the object is gone when that is said.
func (e *Event) removed(body map[string]json.RawMessage) ([]Answer, Outcome) {
	details, _ := fields(body["details"])
	uid, name := textOf(details["uid"]), textOf(details["name"])
	if e.Verb != verbDelete || e.Object.Subresource != "" || textOf(body["status"]) != "Success" || uid == "" || name != e.Object.Name {
		return nil, Unknown
	}
	return []Answer{e.answer(e.key(name), uid, "", change.Deleted, Proven)}, Told
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
		if m, found := metadataOf(item); found {
			answers = append(answers, e.answer(m.key, m.uid, "", change.Deleted, Possible))
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
	case e.created():
		return []Answer{e.answer(m.key, m.uid, m.version, change.Added, Proven)}, Told
	case e.Verb == verbDelete && !m.deleting: // of Services and some others the last state is the answer
		return []Answer{e.answer(m.key, m.uid, "", change.Deleted, Proven)}, Told
	case m.ends: // several may have removed the last finalizer at once
		return []Answer{e.answer(m.key, m.uid, "", change.Deleted, Possible)}, Told
	case certainty == "":
		return nil, Unchanged
	}
	return []Answer{e.answer(m.key, m.uid, m.version, change.Updated, certainty)}, Told
}

// created says whether the request has made the object, which is a state that nobody else can have made.
func (e *Event) created() bool {
	return e.Status.Code == 201 && e.Object.Subresource == "" && e.Verb != verbDelete
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

func (e *Event) answer(key change.Key, uid, version string, op change.Op, certainty Certainty) Answer {
	return Answer{
		Group: e.Object.Group, Resource: e.Object.Resource, Key: key, UID: uid, Version: version, Op: op, Certainty: certainty,
	}
}

// metadata is what is read of an object's.
type metadata struct {
	key          change.Key
	uid, version string
	deleting     bool
	ends         bool // nothing keeps the object any more: no API server stores such a state
	managed      json.RawMessage
}

func metadataOf(object json.RawMessage) (metadata, bool) {
	body, _ := fields(object)
	return metadataIn(body)
}

func metadataIn(body map[string]json.RawMessage) (metadata, bool) {
	all, _ := fields(body["metadata"])
	m := metadata{
		key: change.Key{Namespace: textOf(all["namespace"]), Name: textOf(all["name"])},
		uid: textOf(all["uid"]), version: textOf(all["resourceVersion"]),
		managed: all["managedFields"],
	}
	var finalizers []string
	var grace int64
	m.deleting = textOf(all["deletionTimestamp"]) != ""
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
		if entry.Time.After(newest) {
			newest = entry.Time
		}
	}
	if newest.Before(e.Received.Truncate(time.Second)) || newest.After(e.Completed) {
		return false
	}
	for _, entry := range entries {
		if entry.Time.Equal(newest) && (entry.Manager != e.manager() || entry.Subresource != e.Object.Subresource) {
			return false
		}
	}
	return true
}
