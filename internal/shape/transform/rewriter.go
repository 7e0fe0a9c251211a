package transform

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/kubecdc/kubecdc/internal/scan"
	"github.com/kubecdc/kubecdc/internal/scan/slab"
)

// Worker applies the rules to one object after the other, with the same memory. It is for one goroutine at a time.
type Worker struct {
	rewriter rewriter
	slab     slab.Slab
}

// Apply appends the owner's object as the rules leave it to dst. It returns an error, and nothing, for what is no JSON
// object.
func (t *Transform) Apply(dst, object []byte, owner Owner) ([]byte, error) {
	var proof scan.Proof
	proof.Prove(object, t.Watched())
	left, err := t.Worker().Apply(object, &proof, owner)
	if err != nil {
		return nil, err
	}
	return append(dst, left...), nil
}

// Worker makes one more.
func (t *Transform) Worker() *Worker {
	return &Worker{rewriter: rewriter{Transform: t, field: field{mac: hmac.New(sha256.New, t.key), bound: t.binds}}}
}

// Apply is that of the Transform, with a proof of the object that is made already. It returns the object itself where
// all of it stays, and otherwise memory of its own.
func (w *Worker) Apply(object []byte, proof *scan.Proof, owner Owner) ([]byte, error) {
	r := &w.rewriter
	defer r.forget()
	r.start(owner)
	r.out = w.slab.Room(len(object))
	if !r.run(proof, object) {
		return nil, errors.New("transform an object: it is not valid JSON")
	}
	if r.copied == 0 {
		return object, nil
	}
	return w.slab.Keep(r.out), nil
}

// rewriter goes through an object once and writes what is left of it. What stays as it is, is copied in pieces, each up
// to where something goes. It is used again for the next object.
type rewriter struct {
	*Transform
	scan.Cursor
	proof     *scan.Proof
	in, out   []byte
	copied    int        // up to where in is written, or left out
	watch     int        // of what the proof watched, those that start before the cursor
	nodes     []*Node    // of the scopes above, each after that of its container
	variables []variable // of the outermost env
	next      int        // of the variables
	foreseen  int        // up to where variables are known
	emptied   bool       // all that was in the last object or list was left out
	applied   bool       // the object is the text of an annotation of another
	text      []byte     // of the scalar that is hashed
	field
}

// run appends the whole object to out, or nothing where all of it stays.
func (r *rewriter) run(proof *scan.Proof, object []byte) bool {
	r.Cursor, r.proof, r.in = proof.Cursor(), proof, object
	r.foreseen, r.watch, r.copied = 0, 0, 0
	r.nodes = append(r.nodes[:0], r.paths)
	if !proof.Whole() || r.Byte() != '{' {
		return false
	}
	if r.At() > 0 {
		r.cut(0, r.At())
	}
	r.value(scope{to: 1, leads: r.paths.Leads, kept: r.paths.Leads&Keep == 0})
	if r.copied > 0 || r.At() < len(object) {
		r.cut(r.At(), len(object))
	}
	return true
}

// cut leaves a part out. All before it that was not written is.
func (r *rewriter) cut(start, end int) {
	r.out = append(r.out, r.in[r.copied:start]...)
	r.copied = end
}

// forget lets go of the object, and of memory that few objects need.
func (r *rewriter) forget() {
	const most = 1 << 20 // bytes of each
	r.Cursor, r.proof, r.in, r.out = scan.Cursor{}, nil, nil, nil
	if cap(r.text)+16*cap(r.variables)+8*cap(r.nodes)+cap(r.path)+40*cap(r.anchors) > most {
		r.text, r.variables, r.nodes, r.path, r.anchors = nil, nil, nil, nil, nil
	}
}

func (r *rewriter) value(s scope) {
	if s.ends&inside != 0 && !s.hashed {
		if r.Byte() == '"' {
			r.applies(r.At(), r.Skip())
			return
		}
		s.hashed = true
	}
	switch start := r.At(); {
	case r.Byte() != '{' && r.Byte() != '[':
		if token := r.Skip(); s.hashed {
			r.hash(start, token)
		}
	case !r.looks(s) || r.isBare(s):
		r.Skip()
	case r.Byte() == '{':
		r.object(s)
	default:
		r.list(s)
	}
}

// under is the scope of the value under the key.
func (r *rewriter) under(s scope, key []byte) scope {
	inner := r.below(s)
	inner.env = len(r.env) > 0 && string(key) == envKey
	if s.names && (bytes.HasPrefix(key, []byte("k:")) || bytes.HasPrefix(key, []byte("v:"))) {
		inner.ends = Drop
	}
	if s.from == s.to { // no path leads here
		return inner
	}
	for _, n := range r.nodes[s.from:s.to] {
		r.follow(&inner, n.Fields[string(key)])
		r.follow(&inner, n.Any)
	}
	return inner.decided()
}

// element is the scope of the value at the index.
func (r *rewriter) element(s scope, index int) scope {
	inner := r.below(s)
	inner.env, inner.listed = s.env, true
	if s.from == s.to {
		return inner
	}
	for _, n := range r.nodes[s.from:s.to] {
		r.follow(&inner, n.Elements[index])
		r.follow(&inner, n.Any)
	}
	return inner.decided()
}

// below has no nodes yet. It takes the place of the nodes of the member before.
func (r *rewriter) below(s scope) scope {
	r.nodes = r.nodes[:s.to]
	return scope{from: s.to, to: s.to, kept: s.kept, hashed: s.hashed, names: s.names}
}

func (r *rewriter) follow(s *scope, n *Node) {
	if n == nil {
		return
	}
	s.ends |= n.Ends
	if n.Leads != 0 {
		r.nodes = append(r.nodes, n)
		s.to, s.leads = s.to+1, s.leads|n.Leads
	}
}

func (r *rewriter) object(s scope) {
	hidden := s.env && r.isHidden()
	behind := r.At() + len("{") // what stays
	depth := len(r.path)
	r.Enter()
	first, left := true, false
	for r.Next('}') {
		start := r.At()
		raw := r.Key()
		key := scan.Text(raw)
		inner := r.under(s, key)
		inner.hashed = inner.hashed || hidden && string(key) == "value" || s.env && !s.listed && r.matches(key)
		if r.leaves(inner) {
			left = true
			continue
		}
		written, copied := len(r.out), r.copied
		r.comma(behind, start, first)
		if end := start + len(raw); r.At() != end+len(":") {
			r.cut(end, r.At())
			r.out = append(r.out, ':')
		}
		r.emptied = false
		if r.passes(inner) {
			r.Skip()
		} else {
			r.member(depth, key)
			r.value(inner)
		}
		if r.emptied && r.prunes {
			r.out, r.copied, left = r.out[:written], copied, true
			continue
		}
		behind, first = r.At(), false
	}
	r.leave(depth)
	r.close(behind)
	r.emptied = first && left
}

func (r *rewriter) list(s scope) {
	behind := r.At() + len("[") // what stays
	depth := len(r.path)
	r.Enter()
	first, left := true, false
	for index := 0; r.Next(']'); index++ {
		inner := r.element(s, index)
		if r.leaves(inner) {
			left = true
			continue
		}
		r.comma(behind, r.At(), first)
		if r.passes(inner) {
			r.Skip()
		} else {
			r.item(depth, index)
			r.value(inner)
		}
		behind, first = r.At(), false
	}
	r.leave(depth)
	r.close(behind)
	r.emptied = first && left
}

// comma leaves nothing but a comma before a member that stays; before the first one nothing.
func (r *rewriter) comma(behind, start int, first bool) {
	switch {
	case first && start != behind:
		r.cut(behind, start)
	case !first && start != behind+len(","):
		r.cut(behind, start)
		r.out = append(r.out, ',')
	}
}

// close leaves nothing before the bracket that was stepped over.
func (r *rewriter) close(behind int) {
	if bracket := r.At() - len("}"); bracket != behind {
		r.cut(behind, bracket)
	}
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

// looks says whether a rule needs to look into the object or list at the cursor: also for a value that is called env.
func (r *rewriter) looks(s scope) bool {
	watched, end := r.proof.Watched(), r.Cursor
	for r.watch < len(watched) && int(watched[r.watch]) <= r.Place() {
		r.watch++
	}
	end.Skip()
	return s.looked() || r.watch < len(watched) && int(watched[r.watch]) < end.Place()
}

// passes says whether the value at the cursor stays as it is. The way to it is not noted: it would be a hash for each.
func (r *rewriter) passes(s scope) bool {
	return !s.hashed && s.ends&inside == 0 && (r.Byte() != '{' && r.Byte() != '[' || !r.looks(s))
}

// hash writes the keyed hash of the scalar at start: the first 128 bits of HMAC-SHA-256 (RFC 2104) over the field, and
// over a string's characters, or another scalar's digits or letters.
func (r *rewriter) hash(start int, token []byte) {
	if len(token) == 0 || string(token) == "null" || r.again && isHash(token) {
		return
	}
	r.cut(start, r.At())
	r.text = r.text[:0]
	switch {
	case token[0] == '"' && bytes.IndexByte(token, '\\') > 0:
		r.text = scan.AppendText(r.text, token)
		token = r.text
	case token[0] == '"': // also where it is no UTF-8
		token = token[1 : len(token)-1]
	}
	r.out = append(r.out, '"')
	r.out = append(r.out, hashPrefix...)
	r.out = hex.AppendEncode(r.out, r.sumOf(token)[:hashSize])
	r.out = append(r.out, '"')
}

// applies applies the rules to the object whose text the string at start is. What is no object becomes a hash, and so
// does such a text within it.
func (r *rewriter) applies(start int, token []byte) {
	text := scan.AppendText(nil, token)
	var proof scan.Proof
	proof.Prove(text, r.Watched())
	within := rewriter{Transform: r.Transform, field: r.within(), applied: true}
	if r.applied || !within.run(&proof, text) {
		r.hash(start, token)
		return
	}
	if within.copied == 0 {
		return
	}
	r.cut(start, r.At())
	left, err := json.Marshal(string(within.out))
	if err != nil { // a string can always be written
		panic(fmt.Sprintf("write what rules leave of a text: %v", err))
	}
	r.out = append(r.out, left...)
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

// variable is an object in a list of environment variables.
type variable struct {
	at     int // in the text
	hidden bool
}

// isBare steps ahead through an outermost env, to note its variables, and says whether there is nothing in it for any
// rule.
func (r *rewriter) isBare(s scope) bool {
	if !s.env || r.At() < r.foreseen {
		return false
	}
	ahead := r.Cursor
	r.variables, r.next = r.variables[:0], 0
	hides := r.foresee(&ahead, s)
	r.foreseen = ahead.At()
	return !hides && s.kept && !s.hashed && !s.names && s.from == s.to
}

// isHidden says whether the object at the cursor is an environment variable whose value nobody may see.
func (r *rewriter) isHidden() bool {
	at := r.At()
	for r.variables[r.next].at < at { // in what was left out
		r.next++
	}
	return r.variables[r.next].hidden
}

// foresee notes the variables of a value, and of every env within: once for the outermost, since to look ahead in each
// would cost the square of their depth. It says whether one of them may hide a value.
func (r *rewriter) foresee(c *scan.Cursor, s scope) (hides bool) {
	switch c.Byte() {
	case '[':
		s.listed = true
		c.Enter()
		for c.Next(']') {
			hides = r.foresee(c, s) || hides
		}
	case '{':
		hides = r.foreseeObject(c, s)
	default:
		c.Skip()
	}
	return hides
}

func (r *rewriter) foreseeObject(c *scan.Cursor, s scope) (hides bool) {
	place := len(r.variables)
	if s.env {
		r.variables = append(r.variables, variable{at: c.At()})
	}
	c.Enter()
	for c.Next('}') {
		key := scan.Text(c.Key())
		hides = hides || s.env && !s.listed && r.matches(key)
		if !s.env || string(key) != "name" || c.Byte() != '"' {
			hides = r.foresee(c, scope{env: string(key) == envKey}) || hides
			continue
		}
		if name := scan.Text(c.Skip()); r.matches(name) {
			r.variables[place].hidden, hides = true, true
		}
	}
	return hides
}

func (r *rewriter) matches(name []byte) bool {
	upper := r.upper(name)
	for i := range r.env {
		if r.env[i].matches(upper) {
			return true
		}
	}
	return false
}

// upper is the name in capitals, in memory that the next name gets.
func (r *rewriter) upper(name []byte) []byte {
	r.text = r.text[:0]
	for _, c := range name {
		if c >= utf8.RuneSelf {
			return bytes.ToUpper(name)
		}
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		r.text = append(r.text, c)
	}
	return r.text
}

// scope is what the rules say of a value.
type scope struct {
	from, to int  // where its nodes are in the rewriter's, whence paths go on
	leads    Rule // of these paths
	ends     Rule // of the paths that end at the value
	kept     bool // a path of keep ended at it or above, or there is none
	hashed   bool // a path of redact did
	env      bool // there are rules of variables, and the value is a list or map called env, or in such a list
	listed   bool // it is in such a list
	names    bool // a path of fields ended at it or above
}

// looked says whether a rule needs to look into the value.
func (s *scope) looked() bool {
	return !s.kept || s.hashed || s.env || s.names || s.leads&(Drop|Redact|inside|fields) != 0
}

// left says whether the value is left in, if it is no scalar where a path of keep looks for something within.
func (s *scope) left() bool { return s.ends&Drop == 0 && (s.kept || s.leads&Keep != 0) }

func (s scope) decided() scope {
	s.kept = s.kept || s.ends&Keep != 0
	s.hashed = s.hashed || s.ends&Redact != 0
	s.names = s.names || s.ends&fields != 0
	return s
}
