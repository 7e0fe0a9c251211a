package source

import (
	"cmp"
	"context"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/listener"
)

// retireFor tells the sink that nothing of the stream exists.
func (i *Informer) retireFor(ctx context.Context, seat *listener.Seat, version string) error {
	is := seat.Known(&i.way)
	at, newest := is.From, is.History
	if newest == 0 {
		return nil
	}
	var err error
	if i.epoch, err = i.Histories.EpochOf(newest); err != nil { // which is that of what was delivered (I8)
		return err
	}
	version = cmp.Or(version, at.Version, "0")
	asOf := checkpoint.Point{History: newest, Version: version}
	snapshot := &change.Snapshot{
		ID: seat.PartID(version), Reason: change.Removed, From: at.Version,
		ResourceVersion: version, Epoch: change.ClusterOf(i.epoch), Sinks: []string{seat.Name},
	}
	frame := func(op change.Op) {
		i.tellBeside(seat, i.framing(op, snapshot, i.way.Scope))
	}
	begun := false
	for key, err := range seat.Has(i.way.Resource, string(i.way.Scope), "", "") {
		if err != nil {
			return err
		}
		of := checkpoint.Object{Resource: i.way.Resource, Key: key}
		last, err := seat.Newest(of)
		if err != nil {
			return err
		}
		if !last.Exists() {
			continue
		}
		if _, err := seat.Below(ctx, mostAhead); err != nil {
			return err
		}
		if !begun {
			begun = true
			i.Observer.Reconciling(*i.stream, snapshot)
			frame(change.Gap)
			frame(change.SnapshotBegin)
		}
		gone, err := i.endOf(seat, missed{of, last, asOf, snapshot})
		if err != nil {
			return err
		}
		snapshot.Counts.Deleted++
		seat.Tell(gone, listener.Deleted(of, i.way.Scope, last, asOf))
	}
	frame(change.SnapshotEnd)
	i.Observer.Reconciled(*i.stream, snapshot)
	seat.Over(&i.way, i.stream)
	return nil
}
