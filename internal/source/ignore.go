package source

import "github.com/kubecdc/kubecdc/internal/change"

// ignore withdraws an update that differs in nothing that matters from what was told last. It moves the position, and
// what is kept of the object stays (I2). While a snapshot is read nothing is ignored: a sink that it is for may be told
// of the object by the watch alone. Nor is what a snapshot finds: a sink's log may hold changes that lie in the gap and
// that the state does not know, so what is kept need not be what the sink was told last (I4).
func (s *Stream) ignore(rec *change.Record) {
	told := rec.Filtered || rec.Withheld != "" || rec.Object == nil || rec.Before == nil
	if s.Ignore != nil && s.beside == nil && rec.Op == change.Updated && !told && s.Ignore(rec) {
		rec.Filtered, rec.Object, rec.Before, rec.Actor = true, nil, nil, nil
		if s.Observer.Ignored != nil {
			s.Observer.Ignored(rec)
		}
	}
	if s.BeforeHidden {
		rec.Before = nil
	}
}
