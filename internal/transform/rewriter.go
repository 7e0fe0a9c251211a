package transform

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"hash"

	"github.com/kubecdc/kubecdc/internal/scan"
)

// rewriter goes through an object once and writes what is left of it. It is used again for the next object.
type rewriter struct {
	*Transform
	scan.Cursor
	proof     *scan.Proof
	in, out   []byte
	watch     int        // of what the proof watched, those that start before the cursor
	nodes     []*node    // of the scopes above, each behind that of its container
	variables []variable // of the outermost env
	next      int        // of the variables
	foreseen  int        // up to where variables are known
	mac       hash.Hash
	sum       [sha256.Size]byte // of mac
	text      []byte            // what mac is of
}

// run writes the whole object.
func (r *rewriter) run(proof *scan.Proof, object []byte) bool {
	r.Cursor, r.proof, r.in, r.out = proof.Cursor(), proof, object, r.out[:0]
	r.foreseen, r.watch = 0, 0
	r.nodes = append(r.nodes[:0], r.paths)
	if !proof.Whole() || r.Byte() != '{' {
		return false
	}
	r.value(scope{to: 1, leads: r.paths.leads, kept: r.paths.leads&keep == 0})
	return true
}

// forget lets go of the object, and of memory that few objects need.
func (r *rewriter) forget() {
	const most = 1 << 20 // bytes of each
	r.Cursor, r.proof, r.in = scan.Cursor{}, nil, nil
	if cap(r.out)+cap(r.text)+16*cap(r.variables)+8*cap(r.nodes) > most {
		r.out, r.text, r.variables, r.nodes = nil, nil, nil, nil
	}
}

func (r *rewriter) value(s scope) {
	if s.looked() {
		switch r.Byte() {
		case '{':
			r.object(s)
			return
		case '[':
			r.list(s)
			return
		}
	}
	if s.hashed {
		r.hash(r.Skip())
		return
	}
	r.copy()
}

func (r *rewriter) object(s scope) {
	hidden := s.env && r.hidden()
	r.out = append(r.out, '{')
	start := len(r.out)
	r.Enter()
	for r.Next('}') {
		raw := r.Key()
		key := scan.Text(raw)
		inner := r.member(s, key)
		inner.hashed = inner.hashed || hidden && string(key) == "value"
		if r.leaves(inner) {
			continue
		}
		r.comma(start)
		r.out = append(append(r.out, raw...), ':')
		r.value(inner)
	}
	r.out = append(r.out, '}')
}

func (r *rewriter) list(s scope) {
	r.out = append(r.out, '[')
	start := len(r.out)
	r.Enter()
	for index := 0; r.Next(']'); index++ {
		inner := r.item(s, index)
		if r.leaves(inner) {
			continue
		}
		r.comma(start)
		r.value(inner)
	}
	r.out = append(r.out, ']')
}

// leaves steps over a value that is left out, and says whether it did. A scalar is where a path of keep looks for
// something within.
func (r *rewriter) leaves(s scope) bool {
	if s.left() && (s.kept || r.Byte() == '{' || r.Byte() == '[') {
		return false
	}
	r.Skip()
	return true
}

// comma separates what follows from what was written since start.
func (r *rewriter) comma(start int) {
	if len(r.out) > start {
		r.out = append(r.out, ',')
	}
}

// copy writes the value as it is, but for the variables in it.
func (r *rewriter) copy() {
	copied, place := r.At(), r.Place()
	r.Skip()
	end := r.Cursor
	for r.enters(place, end.Place()) {
		r.out = append(r.out, r.in[copied:r.At()]...)
		r.value(scope{from: len(r.nodes), to: len(r.nodes), kept: true, env: true})
		copied, place = r.At(), r.Place()
	}
	r.out = append(r.out, r.in[copied:end.At()]...)
	r.Cursor = end
}

// enters steps to the next value that is called env, from a place up to another, and says whether there is one.
func (r *rewriter) enters(from, to int) bool {
	watched := r.proof.Watched()
	for r.watch < len(watched) && int(watched[r.watch]) < from { // looked into, or left out
		r.watch++
	}
	if r.watch == len(watched) || int(watched[r.watch]) >= to {
		return false
	}
	r.Cursor = r.proof.At(int(watched[r.watch]))
	return true
}

// hash writes the keyed hash of a scalar: the first 128 bits of HMAC-SHA-256 (RFC 2104) over a string's characters, or
// over another scalar's digits or letters.
func (r *rewriter) hash(token []byte) {
	if len(token) == 0 || string(token) == "null" || r.again && isHash(token) {
		r.out = append(r.out, token...)
		return
	}
	r.text = r.text[:0]
	switch {
	case token[0] == '"' && bytes.IndexByte(token, '\\') > 0:
		r.text = scan.AppendText(r.text, token)
		token = r.text
	case token[0] == '"': // also where it is no UTF-8
		token = token[1 : len(token)-1]
	}
	r.mac.Reset()
	r.mac.Write(token)
	r.out = append(r.out, '"')
	r.out = append(r.out, hashPrefix...)
	r.out = hex.AppendEncode(r.out, r.mac.Sum(r.sum[:0])[:hashSize])
	r.out = append(r.out, '"')
}

// hashPrefix is before the digits of a hash, and hashSize how many bytes these are of.
const (
	hashPrefix = "hmac-sha256:"
	hashSize   = 16
)

// isHash says whether the token looks as hash writes one.
func isHash(token []byte) bool {
	digits, found := bytes.CutPrefix(token, []byte(`"`+hashPrefix))
	return found && len(digits) == 2*hashSize+1 && len(bytes.Trim(digits[:2*hashSize], "0123456789abcdef")) == 0
}
