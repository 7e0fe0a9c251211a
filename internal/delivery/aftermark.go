package delivery

import (
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/redo"
)

// afterMark is what the listener keeps of the ids that its sink finds after a mark.
type afterMark struct {
	count   int
	log     *redo.Reading   // of the first opening, and where the log lost something
	held    *heldReading    // of a sink that comes back; nil of others
	unread  *unreadReading  // of streams that are not configured; nil where there are none
	letters func(id string) // finds those that are claimed
	settle  func() error    // ends that

	// Where the batch that failed is looked for:
	reader  *redo.Reader
	retried map[string]struct{}
	failed  error
}

// take takes the next id.
func (m *afterMark) take(id string) {
	m.count++
	m.letters(id)
	if m.log == nil {
		m.takeRetried(id)
		return
	}
	m.log.Take(id)
	if m.held != nil {
		m.held.take(id)
	}
	if m.unread != nil {
		m.unread.take(id)
	}
}

// takeRetried keeps an id that may be one of the batch.
func (m *afterMark) takeRetried(text string) {
	_, ours, err := m.reader.Ours(text)
	if m.failed == nil {
		m.failed = err
	}
	if any, _ := change.ParseAnyID(text); ours || any.Op == change.Actor {
		m.retried[text] = struct{}{}
	}
}

// err is what kept ids from being read.
func (m *afterMark) err() error {
	if m.failed != nil {
		return m.failed
	}
	if m.log != nil && m.log.Err() != nil {
		return m.log.Err()
	}
	if m.held != nil && m.held.err != nil {
		return m.held.err
	}
	if m.unread != nil {
		return m.unread.err
	}
	return nil
}
