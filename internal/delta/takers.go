package delta

import "bytes"

// patch writes operations.
type patch struct {
	out         []byte
	start, most int
	failed      bool
}

func (p *patch) take(op string, pointer, value []byte) (more bool) {
	if len(p.out)+len(pointer)+len(value) > p.most || len(pointer) == 0 {
		p.failed = true
		return false
	}
	if len(p.out) > p.start+1 {
		p.out = append(p.out, ',')
	}
	p.out = append(append(p.out, `{"op":"`...), op...)
	p.out = append(append(append(p.out, `","path":"`...), pointer...), '"')
	if value != nil {
		p.out = append(append(p.out, `,"value":`...), value...)
	}
	p.out = append(p.out, '}')
	return true
}

// What pointers are told, at most.
const (
	mostPointers     = 64
	mostPointerBytes = 4 << 10
)

// pointers writes where something differs.
type pointers struct {
	out   []byte
	start int
	n     int
	cut   bool
}

func (p *pointers) take(_ string, pointer, _ []byte) (more bool) {
	if isUsual(pointer) {
		return true
	}
	if p.n == mostPointers || len(p.out)-p.start+len(pointer) > mostPointerBytes {
		p.cut = true
		return p.n < mostPointers
	}
	if p.n > 0 {
		p.out = append(p.out, ',')
	}
	p.out = append(append(append(p.out, '"'), pointer...), '"')
	p.n++
	return true
}

// isUsual says whether it is what changes with every update.
func isUsual(pointer []byte) bool {
	rest, managed := bytes.CutPrefix(pointer, []byte("/metadata/managedFields"))
	return managed && (len(rest) == 0 || rest[0] == '/') || string(pointer) == "/metadata/resourceVersion"
}

// appendToken appends a key as a step of a pointer (RFC 6901), as the inside of a JSON string.
func appendToken(dst, key []byte) []byte {
	const hex = "0123456789abcdef"
	for _, c := range key {
		switch {
		case c == '~':
			dst = append(dst, "~0"...)
		case c == '/':
			dst = append(dst, "~1"...)
		case c == '"', c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return dst
}
