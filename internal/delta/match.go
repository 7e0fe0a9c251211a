package delta

import (
	"bytes"

	"github.com/kubecdc/kubecdc/internal/scan"
)

// part is a member of an object, or an element of a list.
type part struct {
	raw  []byte // the key as it is written
	key  []byte // what it says
	at   scan.Cursor
	text []byte // the value
}

// match finds for each member of the one object where it is in the other, -1 where it is not: first those of before,
// then those of after. It is not clear where a key stands twice, or says what no text can.
func match(before, after []part) (found []int, clear bool) {
	found = make([]int, len(before)+len(after))
	for i := range found {
		found[i] = -1
	}
	there := found[len(before):]
	if sameKeys(before, after) && rising(before) {
		for i := range before {
			found[i], there[i] = i, i
		}
		return found, true
	}
	index := make(map[string]int, len(before))
	for i := range before {
		if _, twice := index[string(before[i].key)]; twice || before[i].odd() {
			return nil, false
		}
		index[string(before[i].key)] = i
	}
	seen := make(map[string]struct{}, len(after))
	for i := range after {
		if _, twice := seen[string(after[i].key)]; twice || after[i].odd() {
			return nil, false
		}
		seen[string(after[i].key)] = struct{}{}
		if at, both := index[string(after[i].key)]; both {
			found[at], there[i] = i, at
		}
	}
	return found, true
}

func sameKeys(before, after []part) bool {
	if len(before) != len(after) {
		return false
	}
	for i := range before {
		if !bytes.Equal(before[i].raw, after[i].raw) {
			return false
		}
	}
	return true
}

// few is up to how many keys each is compared with each.
const few = 24

// rising says whether no key is there twice and none is odd, where that is known at once.
func rising(parts []part) bool {
	for i := range parts {
		if parts[i].odd() {
			return false
		}
		if len(parts) > few {
			if i > 0 && bytes.Compare(parts[i-1].key, parts[i].key) >= 0 {
				return false
			}
			continue
		}
		for j := range i {
			if bytes.Equal(parts[j].key, parts[i].key) {
				return false
			}
		}
	}
	return true
}

// odd says whether the key may be written in escapes that no text says, such as half of a pair.
func (p *part) odd() bool {
	return bytes.IndexByte(p.raw, '\\') >= 0 && bytes.Contains(p.key, []byte("\uFFFD"))
}
