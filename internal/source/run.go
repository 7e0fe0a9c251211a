package source

import (
	"context"
	"strconv"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// run is one attempt of a reconcile.
type run struct {
	*Stream
	// snapshot is what the records for all sinks belong to: the difference.
	snapshot *change.Snapshot
	// parts are those for whom it is: each sink that is owed a full snapshot, or all as one.
	parts     []*part
	inventory *merge
	sinkOnly  sinkOnly
	held      held
	block     block
	left      change.Position                       // the position while the run is under way, none where it stays
	goesOn    bool                                  // the gap was told
	newest    proof                                 // of what was listed
	gone      func(context.Context, unlisted) error // takes an entry that the list does not have
	upTo      string                                // the version that the page which is read has at most, "" while that is not known
	sorted    bool                                  // the list is proven to be in the inventory's order: see order.go
	passed    []unlisted                            // until then, those that the list has passed over
	nobody    int                                   // items without a name
}

func (s *Stream) newRun(due []change.Owed, version string, sinkOnly []change.SinkOnly) *run {
	now := max(time.Now().UnixMilli(), s.begun+1)
	s.begun = now
	if due[0].Reason == change.Epoch {
		s.epoch = change.NewEpoch(s.server.uid, now)
	}
	cluster := change.ClusterOf(s.epoch)
	if s.beside == nil && !due[0].Reason.Full() { // else whoever watches may be finding out about another one
		cluster = s.server.uid
	}
	r := &run{
		Stream: s,
		snapshot: &change.Snapshot{
			ID:     version + "." + strconv.FormatInt(now, 10),
			Reason: due[0].Reason, From: s.cursor.position.ResourceVersion, Since: s.heard, ResourceVersion: version, Epoch: cluster,
			Limits: due[0].Limits,
		},
		inventory: newMerge(s.Inventory, s.stream.String(), s.server.unsorted.Load()),
		sinkOnly:  newSinkOnly(sinkOnly),
		upTo:      version,
	}
	r.gone = func(ctx context.Context, u unlisted) error { return r.emitDeleted(ctx, u.entry) }
	r.inventory.limit(r.snapshot.Limits)
	if r.snapshot.Reason == change.Initial {
		r.snapshot.From = ""
	}
	for _, owed := range due {
		if owed.Sink != "" {
			r.snapshot.Sinks = append(r.snapshot.Sinks, owed.Sink)
		}
		if s.server.unsorted.Load() {
			owed.After = "" // it means something in the order of the keys only
		}
		snapshot := *r.snapshot
		snapshot.Generation = owed.Generation
		if owed.Since != 0 {
			snapshot.From, snapshot.Since = owed.From, time.UnixMilli(owed.Since)
		}
		r.parts = append(r.parts, &part{owed: owed, snapshot: &snapshot})
	}
	return r
}

// shown is what the observer is told of the snapshot: a gap of a sink alone has its own begin.
func (r *run) shown() *change.Snapshot {
	shown := *r.snapshot
	shown.From, shown.Since = r.parts[0].snapshot.From, r.parts[0].snapshot.Since
	return &shown
}

// limited is the collection within the limits of the run.
func (r *run) limited() collection { return r.server.collection.within(r.snapshot.Limits) }

// unlisted is an entry of the inventory that a list of the version does not have.
type unlisted struct {
	entry change.Entry
	list  string // the version that the list has at most, "" until it is known
}

// isVague says whether the version of the list was never known.
func (u unlisted) isVague() bool { return u.list == "" }
