package fifo

import (
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// OldestOf is by the name of the stream when its oldest record was received that is neither delivered nor on disk.
func (b *Backlog) OldestOf() map[string]time.Time {
	oldest := map[string]time.Time{}
	var last *change.Stream
	note := func(rec *change.Record) {
		if rec == nil || rec.Stream == nil || rec.Stream == last {
			return
		}
		last = rec.Stream
		name := last.String()
		if known, is := oldest[name]; !is || rec.Received.Before(known) {
			oldest[name] = rec.Received
		}
	}
	for _, rec := range b.flight.records {
		if b.flight.read == nil && !b.flight.onDisk(rec) {
			note(rec)
		}
	}
	for at := range b.queue.length {
		note(b.queue.at(at).rec)
	}
	return oldest
}
