package line

import (
	"context"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Drain returns when everything that the stream pushed before is delivered and saved, or with ctx's error.
func (l *Line) Drain(ctx context.Context, stream change.Stream) error {
	l.mu.Lock()
	p := l.streams.named(stream.String())
	goal := p.added
	l.mu.Unlock()
	l.Wake() // the last record may be a bookmark
	return l.await(ctx, func() bool { return p.committed >= goal })
}

// Behind is how many records of the stream are not delivered and saved.
func (l *Line) Behind(stream change.Stream) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.streams.named(stream.String())
	return p.added - p.committed
}

// Unsaved is, by stream, when the oldest record was received that is not part of the saved state. A stream that waits
// for nothing is not in it.
func (l *Line) Unsaved() map[string]time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.streams.oldest()
}

// AnyAway says whether some listener misses some stream, or did.
func (l *Line) AnyAway() bool { return l.anyAway.Load() }

// Forget drops what is known of a stream of which nothing is under way.
func (l *Line) Forget(stream string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.streams.forget(stream)
}
