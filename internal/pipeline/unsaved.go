package pipeline

import "time"

// Unsaved is, by stream, when the oldest record was received that is not part of the saved state. The saved position is
// before it, so whoever reads the stream anew needs the API server's history from there on. A stream that waits for
// nothing is not in it.
func (r *Roster) Unsaved() map[string]time.Time { return r.run.line.Unsaved() }
