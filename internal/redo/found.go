package redo

import (
	"maps"
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
)

// foundIDs are what a sink's log held when it was opened and the saved state did not know, and what of the same objects
// was written since: together they are what a mark carries that lies after them. Records that were saved meanwhile are
// among them, since what was found means something else without them: the delete of a sink-only object changes nothing
// in the inventory. Its size is that of what was found. The zero value is ready for use.
type foundIDs struct {
	ids    []string // in the log's order
	newest map[foundObject]string
	uids   map[string]struct{} // of objects that may still be in existence
}

// foundObject is an object, by the text of its resource.
type foundObject struct {
	resource string
	key      change.Key
}

// add takes what the log held next.
func (f *foundIDs) add(text string, id *change.ID) {
	if f.newest == nil {
		f.newest, f.uids = map[foundObject]string{}, map[string]struct{}{}
	}
	f.ids = append(f.ids, text)
	f.newest[foundObject{id.Resource, id.Key}] = ""
	f.uids[id.UID] = struct{}{}
}

// has says whether something of the object was found.
func (f *foundIDs) has(uid string) bool {
	_, known := f.uids[uid]
	return known
}

// frame takes the id of a snapshot's frame, without which what was found would mean something else.
func (f *foundIDs) frame(text string) { f.ids = append(f.ids, text) }

// wrote takes what was written next. Of an object the newest record counts, and each delete of what was found.
func (f *foundIDs) wrote(id *change.ID) {
	object := foundObject{id.Resource, id.Key}
	if _, known := f.newest[object]; !known || !id.Op.OfObject() {
		return
	}
	text := id.String()
	f.newest[object] = text
	if _, known := f.uids[id.UID]; known && id.Op == change.Deleted {
		delete(f.uids, id.UID)
		f.ids = append(f.ids, text)
	}
}

// all are the ids, those of one object in the log's order.
func (f *foundIDs) all() []string {
	all := slices.Clone(f.ids)
	for text := range maps.Values(f.newest) {
		if text != "" {
			all = append(all, text)
		}
	}
	return all
}

// isEmpty says whether nothing is left.
func (f *foundIDs) isEmpty() bool { return len(f.ids) == 0 }
