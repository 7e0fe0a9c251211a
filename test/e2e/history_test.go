package e2e

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// history is what is known of one object, from the API server's own answers.
type history struct {
	resource string // in kubectl's form
	key      string // namespace/name
	uid      string
	born     bool // the first version is the object's creation
	versions []version
	gone     bool
	deletion uint64 // the delete's own version, 0 where it is not known
	// hidden is how many versions between the last one and the delete nobody was told of: the delete of a pod changes
	// it first.
	hidden int
}

// version is one state of an object.
type version struct {
	number uint64
	mark   string // what the writer wrote into it, "" where it wrote nothing
}

// namespace is the object's.
func (h *history) namespace() string {
	namespace, _, namespaced := strings.Cut(h.key, "/")
	if !namespaced {
		return ""
	}
	return namespace
}

func (h *history) last() version { return h.versions[len(h.versions)-1] }

// find is the index of the version, -1 where there is none.
func (h *history) find(number uint64) int {
	for i, v := range h.versions {
		if v.number == number {
			return i
		}
	}
	return -1
}

// at is the newest version that a list at the resourceVersion has, false where the object is not in it. sure is false
// where nobody knows whether the object was deleted before.
func (h *history) at(list uint64) (newest version, listed, sure bool) {
	for _, v := range h.versions {
		if v.number <= list {
			newest, listed = v, true
		}
	}
	switch {
	case !h.gone || !listed || newest != h.last():
		return newest, listed, true
	case h.deletion == 0:
		return newest, listed, false
	}
	return newest, listed && h.deletion > list, true
}

func (h *history) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s uid=%s:", h.resource, h.key, h.uid)
	for _, v := range h.versions {
		fmt.Fprintf(&text, " %d", v.number)
	}
	if h.gone {
		fmt.Fprintf(&text, " deleted at %d", h.deletion)
	}
	return text.String()
}

// markAnnotation is where the writer writes.
const markAnnotation = "example.com/mark"

// ledger is all histories of one cluster, by uid.
type ledger struct {
	cluster string // its uid, that of kube-system

	mu        sync.Mutex // guards the following
	histories map[string]*history
}

func newLedger() *ledger { return &ledger{histories: map[string]*history{}} }

// clone is the ledger as it is now.
func (l *ledger) clone() *ledger {
	l.mu.Lock()
	defer l.mu.Unlock()
	copied := newLedger()
	copied.cluster = l.cluster
	for uid, h := range l.histories {
		one := *h
		one.versions = slices.Clone(h.versions)
		copied.histories[uid] = &one
	}
	return copied
}

// found adds an object that was there before the writer.
func (l *ledger) found(resource string, object *unstructured.Unstructured) {
	l.add(resource, object, false)
}

// created adds an object that the writer made.
func (l *ledger) created(resource string, object *unstructured.Unstructured) {
	l.add(resource, object, true)
}

func (l *ledger) add(resource string, object *unstructured.Unstructured, born bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.histories[string(object.GetUID())] = &history{
		resource: resource, key: joined(object.GetNamespace(), object.GetName()), uid: string(object.GetUID()), born: born,
		versions: []version{versionOf(object)},
	}
}

func versionOf(object *unstructured.Unstructured) version {
	return version{parseVersion(object.GetResourceVersion()), object.GetAnnotations()[markAnnotation]}
}

// updated adds a version.
func (l *ledger) updated(object *unstructured.Unstructured) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.histories[string(object.GetUID())]
	h.versions = append(h.versions, versionOf(object))
}

// deleted ends a history.
func (l *ledger) deleted(uid string, hidden int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.histories[uid]
	h.gone, h.hidden = true, hidden
}

// complete fills in what only a witness of everything knows, and finds what contradicts it.
func (l *ledger) complete(w *witness) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for uid, h := range l.histories {
		seen := w.seen[uid]
		if seen == nil {
			continue // it was there before the witness, and nothing happened to it
		}
		if !h.born {
			seen.versions = append([]version{h.versions[0]}, seen.versions...)
		}
		for _, v := range h.versions {
			if i := seen.find(v.number); i < 0 || seen.versions[i] != v {
				return fmt.Errorf("the watch of the tests did not see version %d of %s: %s", v.number, h, seen)
			}
		}
		if extra := len(seen.versions) - len(h.versions); extra > h.hidden || seen.gone != h.gone {
			return fmt.Errorf("the watch of the tests saw %s, the writer made %s", seen, h)
		}
		h.versions, h.deletion, h.hidden = seen.versions, seen.deletion, 0
	}
	return nil
}

// count is the number of versions and of deletes.
func (l *ledger) count() (versions, deletes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.histories {
		versions += len(h.versions)
		if h.gone {
			deletes++
		}
	}
	return versions, deletes
}

// newest is the object with the newest version of all that exist.
func (l *ledger) newest() *history {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found history
	for _, h := range l.histories {
		if !h.gone && (found.versions == nil || h.last().number > found.last().number) {
			found = *h // its slice of versions only grows
		}
	}
	return &found
}
