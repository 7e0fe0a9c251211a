package source

import "github.com/kubecdc/kubecdc/internal/source/frame"

// batch are the objects of a page that wait for the next turn.
type batch struct {
	objects []frame.Object
	size    int // their bytes
}

// add takes an object, and says whether there are enough for a turn.
func (b *batch) add(object *frame.Object) (full bool) {
	b.objects = append(b.objects, *object)
	b.size += len(object.JSON)
	return len(b.objects) >= turnObjects || b.size >= turnBytes
}

// reset lets all go.
func (b *batch) reset() {
	clear(b.objects)
	b.objects, b.size = b.objects[:0], 0
}
