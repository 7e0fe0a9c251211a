package sim2

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// The resources of the world. Pods are served from a watch cache, with bookmarks; Events as kube-apiserver serves core
// Events: without a cache, without bookmarks, and with deletes that share one revision.
const (
	pods   = "pods"
	events = "events"
)

func kindOf(resource string) string { return map[string]string{pods: "Pod", events: "Event"}[resource] }

// event is one change of one object, as a watch tells it.
type event struct {
	rev      int
	what     string // ADDED, MODIFIED, DELETED
	resource string
	key      string // namespace/name
	uid      string
	body     string    // the object, with kind and apiVersion
	timeline int       // of the etcd: a restore and another cluster begin a new one
	undone   time.Time // by such a begin; zero where it is not
}

func (ev *event) isUndone() bool { return !ev.undone.IsZero() }

// etcd is what a cluster holds: its history, one list of changes by rising revision.
type etcd struct {
	uid       string // of namespace kube-system
	rev       int
	compacted int // lists and watches of Events from below it are gone
	history   []event
	undone    []event // what a restore took back, and what other clusters had
	timeline  int
	uids      *int // shared by all clusters: a uid is never used twice
}

func newEtcd(uids *int) *etcd {
	*uids++
	return &etcd{uid: fmt.Sprintf("c%07d-kube-system", *uids), rev: 3, uids: uids}
}

// at is the state of the resource at the revision, sorted by key.
func (e *etcd) at(resource string, rev int) []event {
	objects := map[string]event{}
	for _, ev := range e.history {
		if ev.rev > rev {
			break
		}
		if ev.resource != resource {
			continue
		}
		if ev.what == "DELETED" {
			delete(objects, ev.key)
		} else {
			objects[ev.key] = ev
		}
	}
	var sorted []event
	for _, ev := range objects {
		sorted = append(sorted, ev)
	}
	slices.SortFunc(sorted, func(a, b event) int { return strings.Compare(a.key, b.key) })
	return sorted
}

// find is the object with the key, false where there is none.
func (e *etcd) find(resource, key string) (event, bool) {
	for _, ev := range slices.Backward(e.history) {
		if ev.resource == resource && ev.key == key {
			return ev, ev.what != "DELETED"
		}
	}
	return event{}, false
}

// put creates the object or changes it.
func (e *etcd) put(resource, key string) {
	before, found := e.find(resource, key)
	ev := event{what: "MODIFIED", resource: resource, key: key, uid: before.uid, timeline: e.timeline}
	if !found {
		*e.uids++
		ev.what, ev.uid = "ADDED", fmt.Sprintf("u%d", *e.uids)
	}
	e.rev++
	ev.rev = e.rev
	*e.uids++ // no two states of one object are the same, also on both sides of a restore
	ev.body = objectJSON(&ev, *e.uids)
	e.history = append(e.history, ev)
}

// remove deletes the objects in one revision, as the expiry of a lease does.
func (e *etcd) remove(resource string, keys ...string) {
	var gone []event
	for _, key := range keys {
		if before, found := e.find(resource, key); found {
			gone = append(gone, before)
		}
	}
	if len(gone) == 0 {
		return
	}
	e.rev++
	for _, before := range gone {
		ev := before
		ev.rev, ev.what, ev.timeline = e.rev, "DELETED", e.timeline
		ev.body = strings.Replace(before.body, versionJSON(before.rev), versionJSON(e.rev), 1)
		e.history = append(e.history, ev)
	}
}

// restore brings the state of an earlier revision back. What was after it never happened.
func (e *etcd) restore(rev int) {
	var kept []event
	for _, ev := range e.history {
		if ev.rev <= rev {
			kept = append(kept, ev)
		} else {
			ev.undone = time.Now()
			e.undone = append(e.undone, ev)
		}
	}
	e.history, e.rev, e.compacted = kept, rev, min(e.compacted, rev)
	e.timeline++
}

// rewrite does again, in the state that was restored, what a restore has just undone, below the revision: the same
// objects change at the same revisions as before, to other states.
func (e *etcd) rewrite(below int) {
	for _, ev := range e.undone {
		if ev.timeline != e.timeline-1 || ev.what != "MODIFIED" || ev.rev <= e.rev || ev.rev >= below {
			continue
		}
		if now, found := e.find(ev.resource, ev.key); found && now.uid == ev.uid {
			e.rev = ev.rev - 1
			e.put(ev.resource, ev.key)
		}
	}
}

// remake is another cluster in this one's place, with nothing in it.
func (e *etcd) remake(rev int) {
	*e.uids++
	for _, ev := range e.history {
		ev.undone = time.Now()
		e.undone = append(e.undone, ev)
	}
	e.uid, e.history, e.rev, e.compacted = fmt.Sprintf("c%07d-kube-system", *e.uids), nil, rev, rev
	e.timeline++
}

// objectJSON is the object as a watch shows it.
func objectJSON(ev *event, salt int) string {
	namespace, name, _ := strings.Cut(ev.key, "/")
	return fmt.Sprintf(`{"kind":"%s","apiVersion":"v1","metadata":{"name":"%s","namespace":"%s","uid":"%s",%s},"salt":%d}`,
		kindOf(ev.resource), name, namespace, ev.uid, versionJSON(ev.rev), salt)
}

func versionJSON(rev int) string { return fmt.Sprintf(`"resourceVersion":"%d"`, rev) }

// itemJSON is the object as an item of a list shows it: without kind and apiVersion.
func itemJSON(ev *event) string {
	return "{" + ev.body[strings.Index(ev.body, `"metadata"`):]
}

// bookmarkJSON is the frame of a bookmark.
func bookmarkJSON(resource string, rev int) string {
	return fmt.Sprintf(`{"type":"BOOKMARK","object":{"kind":"%s","apiVersion":"v1","metadata":{%s}}}`+"\n", kindOf(resource), versionJSON(rev))
}

// frameJSON is the frame of a change, with the object in the version.
func frameJSON(ev *event, version string) string {
	body := strings.Replace(ev.body, apiVersionJSON("v1"), apiVersionJSON(version), 1)
	return `{"type":"` + ev.what + `","object":` + body + "}\n"
}

func apiVersionJSON(version string) string { return `"apiVersion":"` + version + `"` }

// statusJSON is the server's error.
func statusJSON(code int, reason, message string) string {
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"%s","reason":"%s","code":%d}`, message, reason, code)
}
