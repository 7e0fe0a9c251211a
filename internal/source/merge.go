package source

import (
	"bytes"
	"errors"
	"fmt"
	"iter"

	"github.com/kubecdc/kubecdc/internal/change"
)

// errUnsorted says that a list is not in the bytewise order of its joined keys, which kube-apiserver keeps and an
// aggregated API server need not.
var errUnsorted = errors.New("the list is not sorted")

// merge compares a list with the inventory. Both are sorted, so they are read side by side and neither is held in
// memory (I6). A list that is not sorted is compared by looking up each key, at the price of remembering all keys.
type merge struct {
	lookup func(change.Key) (change.Entry, bool, error)
	scan   func(behind string) iter.Seq2[change.Entry, error]

	next    func() (change.Entry, error, bool)
	stop    func()
	entry   change.Entry // the first that no listed key has reached
	more    bool         // entry is one
	behind  string       // the joined key after which the scan begins
	last    []byte       // the joined key listed last
	started bool
	joined  []byte // reused for keys that are looked at

	blind   bool // what the list does not have is not known
	unknown bool // something was listed after last of which nobody knows what it is

	listed map[string]struct{} // the joined keys, only where the list is unsorted
}

func newMerge(inventory Inventory, stream string, unsorted bool) *merge {
	m := &merge{
		lookup: func(key change.Key) (change.Entry, bool, error) { return inventory.Lookup(stream, key) },
		scan:   func(behind string) iter.Seq2[change.Entry, error] { return inventory.Scan(stream, behind) },
		stop:   func() {},
	}
	if unsorted {
		m.listed = map[string]struct{}{}
	}
	return m
}

// close ends the scan.
func (m *merge) close() { m.stop() }

// restart begins another scan, of the inventory as it is now after the key that was listed last, "" for the first.
func (m *merge) restart(behind string) {
	m.stop()
	m.started, m.more, m.stop = false, false, func() {}
	m.behind, m.last, m.unknown = behind, append(m.last[:0], behind...), false
}

// find returns the inventory's entry for a listed key. It hands the entries that the list has passed over to gone.
func (m *merge) find(key change.Key, gone func(change.Entry) error) (change.Entry, bool, error) {
	if m.listed != nil {
		m.listed[key.String()] = struct{}{}
		return m.lookup(key)
	}
	m.joined = key.AppendString(m.joined[:0])
	if bytes.Compare(m.joined, m.last) <= 0 {
		return change.Entry{}, false, errUnsorted
	}
	m.last, m.joined = m.joined, m.last
	defer func() { m.unknown = false }()
	if m.blind {
		return m.lookup(key)
	}
	for {
		if err := m.peek(); err != nil || !m.more {
			return change.Entry{}, false, err
		}
		m.joined = m.entry.Key.AppendString(m.joined[:0])
		order := bytes.Compare(m.joined, m.last)
		if order > 0 {
			return change.Entry{}, false, nil
		}
		entry := m.entry
		m.more = false
		if order == 0 {
			return entry, true, nil
		}
		if m.unknown {
			continue
		}
		if err := gone(entry); err != nil {
			return change.Entry{}, false, err
		}
	}
}

// passUnknown says that something is listed of which nobody knows what it is. So none of the entries up to the next
// listed key is known to be gone, and where the list is not sorted none at all.
func (m *merge) passUnknown() { m.unknown = true }

// peek makes entry the next of the inventory, if there is one.
func (m *merge) peek() error {
	if m.more {
		return nil
	}
	if !m.started {
		m.next, m.stop = iter.Pull2(m.scan(m.behind))
		m.started = true
	}
	entry, err, more := m.next()
	if err != nil {
		return fmt.Errorf("scan the inventory: %w", err)
	}
	m.entry, m.more = entry, more
	return nil
}

// rest yields the entries that the list does not have.
func (m *merge) rest() iter.Seq2[change.Entry, error] {
	switch {
	case m.unknown:
		return func(func(change.Entry, error) bool) {}
	case m.listed != nil:
		return m.restUnsorted()
	}
	return func(yield func(change.Entry, error) bool) {
		for {
			err := m.peek()
			if err == nil && !m.more {
				return
			}
			m.more = false
			if !yield(m.entry, err) || err != nil {
				return
			}
		}
	}
}

func (m *merge) restUnsorted() iter.Seq2[change.Entry, error] {
	return func(yield func(change.Entry, error) bool) {
		for entry, err := range m.scan("") {
			if _, listed := m.listed[entry.Key.String()]; listed && err == nil {
				continue
			}
			if !yield(entry, err) || err != nil {
				return
			}
		}
	}
}
