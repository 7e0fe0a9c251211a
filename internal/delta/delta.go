package delta

import (
	"unicode/utf8"

	"github.com/kubecdc/kubecdc/internal/scan"
)

// Delta compares one pair of objects after the other with the same memory. It is for one goroutine at a time. The zero
// value is ready.
type Delta struct {
	proofs [2]scan.Proof
	walk   walk
}

// Patch appends to dst a patch that makes after of before. It is false, and dst as it was, where there is none of at
// most so many bytes, or one of both is no JSON object.
func (d *Delta) Patch(dst, before, after []byte, most int) ([]byte, bool) {
	start := len(dst)
	p := &patch{out: append(dst, '['), start: start, most: start + most}
	if !d.compare(before, after, p) || p.failed {
		return dst[:start], false
	}
	return append(p.out, ']'), true
}

// Changed appends to dst the pointers of what differs, a list of JSON. What changes with every update is left out. Cut
// says that there are more. It is false where one of both is no JSON object.
func (d *Delta) Changed(dst, before, after []byte) (list []byte, cut, ok bool) {
	p := &pointers{out: append(dst, '['), start: len(dst)}
	if !d.compare(before, after, p) {
		return dst, false, false
	}
	return append(p.out, ']'), p.cut, true
}

// compare tells the taker of all differences.
func (d *Delta) compare(before, after []byte, to taker) bool {
	if !utf8.Valid(before) || !utf8.Valid(after) {
		return false
	}
	b, a := &d.proofs[0], &d.proofs[1]
	b.Prove(before, "")
	a.Prove(after, "")
	defer b.Forget()
	defer a.Forget()
	if !b.Whole() || !a.Whole() {
		return false
	}
	from, to2 := b.Cursor(), a.Cursor()
	if from.Byte() != '{' || to2.Byte() != '{' {
		return false
	}
	d.walk.begin(to)
	d.walk.value(from, to2)
	d.walk.forget()
	return true
}
