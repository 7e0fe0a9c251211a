package source

import (
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// An object that cannot be read ends no stream: a gap stands in its place, where its key is known for the key (I4).
// Where nobody knows whose it is, a watch is opened again, since it may have been broken on its way, and the second
// time at the same position a reconcile is due; in a list it is a gap of the stream.

// noteBroken makes a reconcile due where what cannot be read stands at the position for the second time.
func (s *Stream) noteBroken(err error) {
	if s.endings.broke(s.cursor.position.ResourceVersion, frame.IsUnreadable(err)) {
		s.schedule.add(change.Owed{Reason: change.Stale})
	}
}
