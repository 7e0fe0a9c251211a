package delivery

import (
	"context"
	"fmt"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/line"
	"github.com/kubecdc/kubecdc/internal/redo"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Recall reads the sink's log. A sink that cannot do that keeps what it has.
func (l *Listener) Recall(ctx context.Context) error {
	log, ok := l.Target.(sink.Recaller)
	if !ok {
		return nil
	}
	l.Recovery.With(func(r *line.Recovery) { r.Undeleted.Forget() })
	if err := log.Recall(ctx, l.recalled); err != nil {
		return fmt.Errorf("read what the log of sink %s still holds: %w", l.Name, err)
	}
	return l.recallSpool()
}

// recalled takes an id of the whole log, oldest first.
func (l *Listener) recalled(text string) error {
	id, stream, err := l.reader.OursIn(text, l.Recovery.Streams())
	if err != nil || stream == nil || !id.Op.OfObject() {
		return err
	}
	gone := false
	if id.Op != change.Deleted {
		gone, err = l.reader.Gone(id, stream.String())
	}
	if err == nil {
		l.Recovery.With(func(r *line.Recovery) { r.Undeleted.Note(id, stream.String(), gone) })
	}
	return err
}

// recallSpool forgets the objects whose deletes are on disk: the sink will be told. It reads what the state has now,
// which may be more than the listener was told of: the deletes are saved with the positions that made their objects
// undeleted.
func (l *Listener) recallSpool() error {
	none := false
	if l.Recovery.With(func(r *line.Recovery) { none = r.Undeleted.None() }); none {
		return nil
	}
	return l.eachSpooled(func(rec *change.Record) {
		if rec.Op == change.Deleted {
			l.Recovery.With(func(r *line.Recovery) { r.Undeleted.Told(rec) })
		}
	})
}

// eachSpooled gives each the records on disk that are not delivered.
func (l *Listener) eachSpooled(each func(rec *change.Record)) error {
	spool, err := l.store.Spool(l.Name)
	if err != nil {
		return err
	}
	l.use(func(b *fifo.Backlog) { spool = b.Undelivered(spool) }) // what is before was delivered, and lost
	most, present := line.BatchLimit(), l.Recovery.Streams()
	for !spool.Empty() {
		records, err := l.store.ReadSpool(l.Name, &spool, most.Bytes, most.Records)
		if err != nil {
			return err
		}
		for _, rec := range records {
			if heir := redo.StreamOf(present, rec.ID(l.clusterUID)); heir != nil && rec.Key.Name != "" {
				rec.Stream = heir
			}
			each(rec)
		}
	}
	return nil
}
