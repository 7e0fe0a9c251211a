package source

import "github.com/kubecdc/kubecdc/internal/change"

// ignore withdraws an update that differs in nothing that matters from what was told last. It moves the position, and
// what is kept of the object stays (I2). While a snapshot is read nothing is ignored: a sink that it is for may be told
// of the object by the watch alone. Nor is what a snapshot finds: a sink's log may hold changes that lie in the gap and
// that the state does not know, so what is kept need not be what the sink was told last (I4).
func (o *output) ignore(rec *change.Record) {
	told := rec.Filtered || rec.Withheld != "" || rec.Object == nil || rec.Before == nil
	if o.Ignore != nil && o.beside == nil && rec.Op == change.Updated && !told && o.Ignore(rec) {
		rec.Filtered, rec.Object, rec.Before, rec.Actor = true, nil, nil, nil
		if o.Observer.Ignored != nil {
			o.Observer.Ignored(rec)
		}
	}
	if o.BeforeHidden {
		rec.Before = nil
	}
}
