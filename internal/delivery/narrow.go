package delivery

import "github.com/kubecdc/kubecdc/internal/change"

// narrow gives the records the form of this sink, and acknowledges those that it does not take. It comes after the
// comparison with the sink's log: what the log holds was written by the rules of its time.
func (l *Listener) narrow(batch []*change.Record) ([]*change.Record, error) {
	if l.Narrow == nil {
		return batch, nil
	}
	taken, left := make([]*change.Record, 0, len(batch)), []*change.Record(nil)
	for _, rec := range batch {
		if narrowed := l.Narrow(rec); narrowed.Filtered {
			left = append(left, rec)
		} else {
			taken = append(taken, narrowed)
		}
	}
	if len(left) == 0 {
		return taken, nil
	}
	return taken, l.Seat.Spare(left)
}
