package listener

import (
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/fifo"
)

// A new configuration can leave out a resource or a namespace of which a sink has objects. Its log says so once, with a
// gap of reason left. The objects stay there, or, with DeletesLeft, are deleted.

// findLeft finds the parts that the sink was given, records on disk included, and that are not configured any more. At
// a later opening only those of the first one count, whose frames may have been dropped with the queue: a stream that
// has ended since then has not left.
func (l *Listener) findLeft(given *Follower) error {
	before := l.left.parts
	l.left = left{}
	for _, s := range l.Streams() {
		if l.Takes(s) {
			l.left.ways = append(l.left.ways, Way{Resource: s.Resource.String(), Scope: checkpoint.ScopeOf(s)})
		}
	}
	ways := given.Left(l.left.ways)
	if len(ways) == 0 {
		return nil
	}
	known, err := l.Store.KnownStreams()
	if err != nil {
		return err
	}
	for _, way := range ways {
		at := slices.IndexFunc(known, func(s change.Stream) bool { return s.Resource.String() == way.Resource })
		was := func(p leftPart) bool { return p.Resource == way.Resource && p.Scope == way.Scope }
		if at < 0 || l.servings > 0 && !slices.ContainsFunc(before, was) {
			continue
		}
		p := leftPart{Way: way, at: given.From(way), stream: known[at]}
		if p.stream.Namespace = ""; way.Scope != checkpoint.Others {
			p.stream.Namespace = string(way.Scope)
		}
		if p.epoch, err = l.Store.EpochOf(p.at.History); err != nil {
			return err
		}
		l.left.parts = append(l.left.parts, p)
	}
	return nil
}

// tellLeft queues the frames of the parts that have left. The caller holds mu.
func (l *Listener) tellLeft() {
	seat := &Seat{&l.Intake, l.servings}
	for at := range l.left.parts {
		p := &l.left.parts[at]
		framing := func(_ *Seat, frame *checkpoint.Item) *change.Record {
			op := change.SnapshotBegin
			if frame.Kind == checkpoint.Gap {
				op = change.Gap
			}
			return p.record(seat, op, frame.At, frame.Comparison)
		}
		seat.putFrames(l.follower.Leave(p.Way), framing)
	}
}

// record makes a record of the part that belongs to the comparison.
func (p *leftPart) record(seat *Seat, op change.Op, at checkpoint.Point, c checkpoint.Comparison) *change.Record {
	return &change.Record{
		Stream: &p.stream, Op: op, ResourceVersion: at.Version, Received: time.Now(), Epoch: p.epoch,
		Snapshot: &change.Snapshot{
			ID: c.ID, Reason: change.Left, From: p.at.Version, ResourceVersion: p.at.Version, Epoch: change.ClusterOf(p.epoch), Sinks: []string{seat.Name},
		},
	}
}

// deleteLeft queues the deletes of some objects that have left, once the sink has everything else. more is true if
// there may be others.
func (l *Listener) deleteLeft() (more bool, err error) {
	const most = 512
	seat, offered := l.Seat()
	if !l.DeletesLeft || l.left.ended == len(l.left.parts) || !offered || query(&l.Intake, func(b *fifo.Backlog) bool { return b.Behind() || b.Unsaved() > 0 }) {
		return false, nil
	}
	p, told := &l.left.parts[l.left.ended], 0
	for row, err := range l.state.Objects(p.Resource, string(p.Scope), l.left.behind) {
		if err != nil {
			return false, err
		}
		l.left.behind = row.Of.Key.String()
		last, err := l.Newest(row.Of)
		if err != nil {
			return false, err
		}
		if !last.Exists() || reads(l.left.ways, p.Resource, row.Of.Key.Namespace) {
			continue
		}
		gone := Deleted(row.Of, p.Scope, last, AsOf(p.at, last))
		rec := p.record(seat, change.Deleted, gone.At, checkpoint.Comparison{})
		rec.Key, rec.UID, rec.FinalStateUnknown = row.Of.Key, last.UID, true
		seat.Tell(rec, gone)
		if told++; told == most {
			return true, nil
		}
	}
	l.left.ended, l.left.behind = l.left.ended+1, ""
	return true, nil
}
