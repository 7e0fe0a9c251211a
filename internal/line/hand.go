package line

import (
	"fmt"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// audience are the listeners that a record is handed to, and those that have left since room was reserved for it, as
// bit masks.
type audience struct{ given, missing uint64 }

// hand queues the record for the listeners that are to have it, and says whether the committer has work. The caller
// holds the line's mu.
//
// Records that the record has made superfluous for a listener, whose sink will never be given them, are acknowledged.
// That is early, and right: the newer one is in line and not acknowledged, so that the position stays before it, and a
// crash brings it again.
func hand(seats []*seat, of *streams, rec *change.Record, to audience) (wake bool, err error) {
	wake = to.given == 0 && rec.Op != change.Bookmark
	for _, s := range seats {
		if to.missing&s.bit() != 0 {
			s.Queue.Cancel(rec.Size())
		}
		superfluous, works := s.Queue.Enter(rec, to.given&s.bit() != 0)
		if _, err := of.settle(s.index, superfluous, (*checkpoint.Tracker).Spare); err != nil {
			return false, fmt.Errorf("leave a record out: %w", err)
		}
		wake = wake || works
	}
	return wake, nil
}
