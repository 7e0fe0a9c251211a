package delivery

import (
	"context"
	"fmt"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/line"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Recall reads the sink's log. A sink that cannot do that keeps what it has.
func (p *past) Recall(ctx context.Context) error {
	log, ok := p.Target.(sink.Recaller)
	if !ok {
		return nil
	}
	p.Recovery.With(func(r *line.Recovery) { r.Undeleted.Forget() })
	if err := log.Recall(ctx, p.recalled); err != nil {
		return fmt.Errorf("read what the log of sink %s still holds: %w", p.Name, err)
	}
	return p.recallSpool()
}

// recalled takes an id of the whole log, oldest first.
func (p *past) recalled(text string) error {
	id, stream, err := p.reader.OursIn(text, p.Recovery.Streams())
	if err != nil || stream == nil || !id.Op.OfObject() {
		return err
	}
	gone := false
	if id.Op != change.Deleted {
		gone, err = p.reader.Gone(id, stream.String())
	}
	if err == nil {
		p.Recovery.With(func(r *line.Recovery) { r.Undeleted.Note(id, stream.String(), gone) })
	}
	return err
}

// recallSpool forgets the objects whose deletes are on disk: the sink will be told. It reads what the state has now,
// which may be more than the listener was told of: the deletes are saved with the positions that made their objects
// undeleted.
func (p *past) recallSpool() error {
	none := false
	if p.Recovery.With(func(r *line.Recovery) { none = r.Undeleted.None() }); none {
		return nil
	}
	return p.eachSpooled(func(rec *change.Record) {
		if rec.Op == change.Deleted {
			p.Recovery.With(func(r *line.Recovery) { r.Undeleted.Told(rec) })
		}
	})
}
