package transform

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// Owner is the object whose values are hashed.
type Owner struct{ Group, Kind, Namespace, Name string }

// field is where the rewriter is, in which object: what a hash is of beside the value.
type field struct {
	mac     hash.Hash
	sum     [sha256.Size]byte // of mac
	owner   Owner
	bound   bool     // hashes are of the field
	path    []byte   // of the value, from the root, or from the text that the object is
	anchors []anchor // the first is the owner
	head    []byte   // what is hashed before the value
}

// anchor stands for a path's beginning. Without anchors, a deep object would be hashed once more for each value in it.
type anchor struct {
	at  int // in path
	sum [sha256.Size]byte
}

// apart is how many bytes of a path are between two anchors, about.
const apart = 256

// start stands at the root of the owner's object.
func (f *field) start(owner Owner) { f.owner, f.path, f.anchors = owner, f.path[:0], f.anchors[:0] }

// within is the field as the place of a whole object, which is its text.
func (f *field) within() field {
	inner := field{mac: f.mac, owner: f.owner, bound: f.bound, path: f.path[:len(f.path):len(f.path)], anchors: f.anchors[:len(f.anchors):len(f.anchors)]}
	if inner.bound {
		inner.path = append(inner.path, 't')
	}
	return inner
}

// member goes to the value under the key, from any in the container whose path has the length.
func (f *field) member(depth int, key []byte) {
	if !f.bound {
		return
	}
	f.leave(depth)
	f.path = append(binary.AppendUvarint(append(f.path, 'k'), uint64(len(key))), key...)
	f.anchor()
}

// item goes to the value at the index.
func (f *field) item(depth, index int) {
	if !f.bound {
		return
	}
	f.leave(depth)
	f.path = binary.AppendUvarint(append(f.path, 'i'), uint64(index))
	f.anchor()
}

// leave goes back to the container whose path has the length.
func (f *field) leave(depth int) {
	f.path = f.path[:depth]
	for len(f.anchors) > 1 && f.anchors[len(f.anchors)-1].at > depth {
		f.anchors = f.anchors[:len(f.anchors)-1]
	}
}

// anchor sets one where the last is too far away. So where they are depends on the path alone.
func (f *field) anchor() {
	if at := len(f.path); at > apart && at-f.last().at > apart {
		f.head = append(append(f.head[:0], f.last().sum[:]...), 'p')
		f.hash(f.path[f.last().at:])
		f.anchors = append(f.anchors, anchor{at, f.sum})
	}
}

// last is the anchor before the field.
func (f *field) last() *anchor {
	if len(f.anchors) == 0 {
		f.head = append(f.head[:0], 'o')
		for _, name := range [...]string{f.owner.Group, f.owner.Kind, f.owner.Namespace, f.owner.Name} {
			f.head = append(binary.AppendUvarint(f.head, uint64(len(name))), name...)
		}
		f.hash(nil)
		f.anchors = append(f.anchors, anchor{0, f.sum})
	}
	return &f.anchors[len(f.anchors)-1]
}

// sumOf is that of a value of the field, or of the value alone.
func (f *field) sumOf(value []byte) []byte {
	f.head = f.head[:0]
	if f.bound {
		last := f.last()
		path := f.path[last.at:]
		f.head = append(append(f.head[:0], last.sum[:]...), 'v')
		f.head = append(binary.AppendUvarint(f.head, uint64(len(path))), path...)
	}
	f.hash(value)
	return f.sum[:]
}

func (f *field) hash(value []byte) {
	f.mac.Reset()
	f.mac.Write(f.head)
	f.mac.Write(value)
	f.mac.Sum(f.sum[:0])
}
