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
// undeleted. Of the batch under way it holds what the sink had, too, and that may be what the log has lost (I4).
func (p *past) recallSpool() error {
	none := false
	if p.Recovery.With(func(r *line.Recovery) { none = r.Undeleted.None() }); none {
		return nil
	}
	had := p.hadDeletes()
	return p.eachSpooled(func(rec *change.Record) {
		if _, answered := had[rec.ID(p.clusterUID)]; rec.Op == change.Deleted && !answered {
			p.Recovery.With(func(r *line.Recovery) { r.Undeleted.Told(rec) })
		}
	})
}

// hadDeletes are the deletes of the batch under way that the sink had when the log was lost: nobody gives them again.
func (p *past) hadDeletes() map[change.ID]struct{} {
	had := map[change.ID]struct{}{}
	for _, rec := range p.given {
		if rec.Op == change.Deleted {
			had[rec.ID(p.clusterUID)] = struct{}{}
		}
	}
	for _, rec := range p.rest {
		delete(had, rec.ID(p.clusterUID))
	}
	return had
}
