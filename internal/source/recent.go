package source

import (
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
)

// maxRecent bounds the objects that a snapshot remembers of the watch (I6). Where there are more, its list is read
// again, at a newer version. Where that fails, the watch waits for the sinks at floodedRecent, and all is forgotten.
const (
	maxRecent     = 1 << 16
	floodedRecent = 2 * maxRecent
)

// recent is what a stream has told of its objects since the mark before the last. What was told before that is in the
// inventory, so that both together say what was told last (told). Deletes are remembered for as long as a list is read
// that is older than they are: the inventory does not know them any more. It is pure; whoever has the stream's turn may
// use it. The zero value remembers nothing.
type recent struct {
	on     bool
	mark   int
	floods int // so often was all forgotten
	byKey  map[change.Key]telling
}

// telling is what was told last of one key.
type telling struct {
	uid, version string
	gone         bool
	mark         int
}

// begin begins to remember.
func (r *recent) begin() { *r = recent{on: true, byKey: map[change.Key]telling{}} }

// end forgets everything.
func (r *recent) end() { *r = recent{} }

// next makes another mark. What was told before the mark before it is in the inventory now. Deletes of keys that the
// list has passed are of no use; passed is asked about them.
func (r *recent) next(passed func(change.Key) bool) {
	r.mark++
	for key, t := range r.byKey {
		if t.mark < r.mark-1 && (!t.gone || passed(key)) {
			delete(r.byKey, key)
		}
	}
}

// unmark makes all that is remembered count as told since the newest mark: nobody waited for it to be saved.
func (r *recent) unmark() {
	for key, t := range r.byKey {
		t.mark = r.mark
		r.byKey[key] = t
	}
}

// forgetDeletes forgets what was told to be gone before the mark before the last.
func (r *recent) forgetDeletes() {
	for key, t := range r.byKey {
		if t.mark < r.mark-1 {
			delete(r.byKey, key)
		}
	}
}

// isFlooded says whether nothing more may be remembered.
func (r *recent) isFlooded() bool { return len(r.byKey) >= floodedRecent }

// flood forgets everything, which is in the inventory by now. What was read of the inventory until then, and a list
// that may be older than a delete that is forgotten, are of no use any more.
func (r *recent) flood() {
	r.byKey = map[change.Key]telling{}
	r.floods++
}

// note takes a record that went in line.
func (r *recent) note(rec *change.Record) {
	if !r.on || !rec.Op.OfObject() || rec.Op == change.Sync || rec.Sink != "" {
		return
	}
	t, known := r.byKey[rec.Key]
	key := rec.Key
	if !known { // else it keeps the memory of the watch's frame
		key = change.Key{Namespace: strings.Clone(key.Namespace), Name: strings.Clone(key.Name)}
	}
	if t.uid != rec.UID {
		t.uid = strings.Clone(rec.UID)
	}
	t.version, t.gone, t.mark = strings.Clone(rec.ResourceVersion), rec.Op == change.Deleted, r.mark
	r.byKey[key] = t
}

// isFull says whether there is more than may be remembered.
func (r *recent) isFull() bool { return len(r.byKey) > maxRecent }

// knows says whether anything is remembered of the key.
func (r *recent) knows(key change.Key) bool {
	_, known := r.byKey[key]
	return known
}

// told is the object of the key as it was told last, where entry is what the inventory has, if found. Deleted is the
// version at which it was told to be gone, "" where that is not known.
func (r *recent) told(key change.Key, entry change.Entry, found bool) (last change.Entry, exists bool, deleted string) {
	t, known := r.byKey[key]
	switch {
	case !known:
		return entry, found, ""
	case t.gone:
		return change.Entry{}, false, t.version
	}
	return change.Entry{Key: key, UID: t.uid, ResourceVersion: t.version}, true, ""
}
