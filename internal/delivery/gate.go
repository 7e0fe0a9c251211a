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

// How long is waited for a format.
const (
	// gateLook is how often is looked whether the sink has become one that nobody waits for.
	gateLook = time.Second
	// gatePatience is how long the other sinks of a stream wait for one whose format cannot encode its records. A
	// registry that restarts is back by then. A gap, which the sink is given later, costs it more than the wait costs
	// the others.
	gatePatience = 30 * time.Second
)

// awaitGate returns when records of the stream can be encoded, or with ctx's error. Nobody waits for a sink that is
// stopped or away: what is queued for it is encoded when it is back. Nor does anybody for one that excused excuses.
func (i *intake) awaitGate(ctx context.Context, stream *change.Stream, excused func() bool) error {
	for i.Gate != nil {
		changed := i.Gate.Changed()
		if i.Gate.Admits(stream) || i.is(func(s state) bool { return s.away || s.halted }) || excused() {
			return nil
		}
		look := time.NewTimer(gateLook)
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

// awaitAdmission is awaitGate for a record that goes in line. When patience ends, the sink is one that refuses the
// stream, and the committer decides whether the others go on without it.
func (i *intake) awaitAdmission(ctx context.Context, rec *change.Record) error {
	began := time.Now()
	return i.awaitGate(ctx, rec.Stream, func() bool {
		if !i.Seat.Gives(rec) {
			return true
		}
		if time.Since(began) >= gatePatience {
			i.refuse(rec.Stream)
		}
		return false
	})
}

// refuse notes that the stream has waited for the sink's format for long.
func (i *intake) refuse(stream *change.Stream) {
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
		p.BeginAbsent(false) // NoteBehind notes what the log holds, when it is read
	}
	held := newHeldReading(&p.reader, p.Name, nil)
	for _, id := range p.toCome(subscription.Stream) {
		held.add(&id, stream)
	}
	err := p.eachSpooled(func(rec *change.Record) {
		if rec.Op == change.Deleted && rec.Stream.String() == subscription.Stream {
			held.all = append(held.all, toldOnDisk(subscription, rec))
		}
	})
	if err != nil {
		return err
	}
	MakeAbsent(batch, subscription)
	if err := p.noteAbsent(held.all, batch); err != nil {
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

// toldOnDisk is a delete on disk, which the sink will be told.
func toldOnDisk(subscription checkpoint.Subscription, deleted *change.Record) checkpoint.Held {
	entry := change.Entry{Key: deleted.Key, UID: deleted.UID, ResourceVersion: deleted.ResourceVersion}
	return checkpoint.Held{Subscription: subscription, Entry: entry}
}
