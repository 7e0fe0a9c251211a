package source

import (
	"iter"

	"github.com/kubecdc/kubecdc/internal/change"
)

// A limited snapshot lists a part of the objects. Of the others it knows nothing: none of them is told to be gone. Of
// those in a namespace, or of a name, what the list does not have is gone. Of those that a selector chooses nobody
// knows which the inventory has, so nothing is concluded from what is not listed.

// limit makes the merge be of what is within the limits. Entries that a selector may choose are looked up.
func (m *merge) limit(l change.Limits) {
	all := m.scan
	switch {
	case l == change.Limits{}:
	case l.Selector != "":
		m.blind = true
		m.scan = func(string) iter.Seq2[change.Entry, error] { return func(func(change.Entry, error) bool) {} }
	case l.Namespace != "" && l.Name != "":
		m.scan = func(behind string) iter.Seq2[change.Entry, error] {
			return m.one(change.Key{Namespace: l.Namespace, Name: l.Name}, behind)
		}
	default:
		m.scan = func(behind string) iter.Seq2[change.Entry, error] { return scanWithin(l, all, behind) }
	}
}

// one yields the entry of the key, if there is one and it is behind.
func (m *merge) one(key change.Key, behind string) iter.Seq2[change.Entry, error] {
	return func(yield func(change.Entry, error) bool) {
		if key.String() <= behind {
			return
		}
		if entry, found, err := m.lookup(key); found || err != nil {
			yield(entry, err)
		}
	}
}

// scanWithin scans the part of the inventory that is of the namespace, and yields what has the name.
func scanWithin(l change.Limits, scan func(behind string) iter.Seq2[change.Entry, error], behind string) iter.Seq2[change.Entry, error] {
	before := ""
	if l.Namespace != "" {
		before = l.Namespace + "/" // the keys of a namespace are one range
	}
	return func(yield func(change.Entry, error) bool) {
		for entry, err := range scan(max(behind, before)) {
			switch {
			case err == nil && l.Namespace != "" && entry.Key.Namespace != l.Namespace:
				if entry.Key.String() > before {
					return
				}
			case err == nil && l.Name != "" && entry.Key.Name != l.Name:
			case !yield(entry, err):
				return
			}
		}
	}
}
