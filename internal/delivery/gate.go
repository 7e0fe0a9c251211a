package delivery

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/line"
)

// awaitGate returns when records of the stream can be encoded, or nobody waits for that, or with ctx's error.
func (i *intake) awaitGate(ctx context.Context, stream *change.Stream) error {
	for changed := i.Holds(stream); changed != nil; changed = i.Holds(stream) {
		look := time.NewTimer(line.GateLook)
		select {
		case <-changed:
		case <-look.C:
		case <-ctx.Done():
			look.Stop()
			return context.Cause(ctx)
		}
		look.Stop()
	}
	return nil
}

// Holds is line.Gate's. The sink has a gate.
func (i *intake) Holds(stream *change.Stream) (changed <-chan struct{}) {
	changed = i.Gate.Changed()
	if i.Gate.Admits(stream) || i.is(func(s state) bool { return s.away || s.halted }) {
		return nil
	}
	return changed
}

// Refuse is line.Gate's.
func (i *intake) Refuse(stream *change.Stream) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.refused == nil {
		i.refused = map[string]change.Stream{}
	}
	i.refused[stream.String()] = *stream
	i.Seat.Wake()
}

// Refused are the streams that have waited for the sink's format since it was asked for last.
func (i *intake) Refused() []change.Stream {
	i.mu.Lock()
	defer i.mu.Unlock()
	refused := slices.Collect(maps.Values(i.refused))
	i.refused = nil
	return refused
}

// Admits says whether the sink's format can encode records of the stream now.
func (i *intake) Admits(stream *change.Stream) bool { return i.Gate == nil || i.Gate.Admits(stream) }

// MissStream makes the sink absent from the stream, of which nothing is in line: durably in the batch, with what the
// sink's log and its disk hold of the stream and the state does not know, and then in the line.
func (p *past) MissStream(stream *change.Stream, batch *checkpoint.Batch) error {
	subscription := checkpoint.Subscription{Sink: p.Name, Stream: stream.String()}
	if !p.compared.Load() && !p.IsAway() {
		p.BeginAbsent(false) // NoteAfterMark notes what the log holds, when it is read
	}
	held := newHeldReading(&p.reader, p.Name, nil)
	for _, id := range p.toCome(subscription.Stream) {
		held.add(&id, stream)
	}
	all, err := p.withDisk(held.all, []*change.Stream{stream})
	if err != nil {
		return err
	}
	MakeAbsent(batch, subscription)
	if err := p.noteAbsent(all, batch); err != nil {
		return err
	}
	p.Seat.Miss(subscription.Stream)
	return nil
}

// toCome are the ids of objects that the sink's log holds, and that are to come again: the oldest first, and of each
// object its delete last.
func (p *past) toCome(stream string) (ids []change.ID) {
	p.Recovery.With(func(r *line.Recovery) { ids = r.Log.ToCome(stream) })
	ids = slices.DeleteFunc(ids, func(id change.ID) bool { return !id.Op.OfObject() })
	ends := func(id change.ID) int {
		if id.Op == change.Deleted {
			return 1
		}
		return 0
	}
	slices.SortFunc(ids, func(a, b change.ID) int {
		return cmp.Or(cmp.Compare(ends(a), ends(b)), change.CompareVersions(a.ResourceVersion, b.ResourceVersion))
	})
	return ids
}
