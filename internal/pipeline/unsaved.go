package pipeline

import "time"

// Unsaved is, by stream, when the oldest record was received that is not part of the saved state. The saved position is
// before it, so whoever reads the stream anew needs the API server's history from there on. A stream that waits for
// nothing is not in it.
func (r *Roster) Unsaved() map[string]time.Time { return r.run.line.waitSince() }

func (l *Line) waitSince() map[string]time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	oldest := map[string]time.Time{}
	for _, rec := range l.leaving { // they come before what is in the trackers, each stream's in its order
		if name := rec.Stream.String(); oldest[name].IsZero() {
			oldest[name] = rec.Received
		}
	}
	for name, p := range l.streams {
		if since, _, waits := p.tracker.Waits(); waits && oldest[name].IsZero() {
			oldest[name] = since
		}
	}
	return oldest
}
