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
func (b *afterMark) take(id string) {
	b.count++
	b.letters(id)
	if b.log == nil {
		b.takeRetried(id)
		return
	}
	b.log.Take(id)
	if b.held != nil {
		b.held.take(id)
	}
	if b.unread != nil {
		b.unread.take(id)
	}
}

// takeRetried keeps an id that may be one of the batch.
func (b *afterMark) takeRetried(text string) {
	_, ours, err := b.reader.Ours(text)
	if b.failed == nil {
		b.failed = err
	}
	if any, _ := change.ParseAnyID(text); ours || any.Op == change.Actor {
		b.retried[text] = struct{}{}
	}
}

// err is what kept ids from being read.
func (b *afterMark) err() error {
	if b.failed != nil {
		return b.failed
	}
	if b.log != nil && b.log.Err() != nil {
		return b.log.Err()
	}
	if b.held != nil && b.held.err != nil {
		return b.held.err
	}
	if b.unread != nil {
		return b.unread.err
	}
	return nil
}
