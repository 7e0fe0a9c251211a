package pipeline

import "github.com/kubecdc/kubecdc/internal/checkpoint"

// Due are the full snapshots that the streams were asked for in this life and that are not read yet. Resyncs are among
// them, which are not saved.
func (r *Roster) Due() []checkpoint.PendingSnapshot { return r.run.due() }

func (c *crew) due() (due []checkpoint.PendingSnapshot) {
	for _, s := range c.sources() {
		if s.Due == nil {
			continue
		}
		for _, owed := range s.Due() {
			due = append(due, checkpoint.PendingSnapshot{Stream: s.Stream.String(), Owed: owed})
		}
	}
	return due
}
