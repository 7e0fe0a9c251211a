package source

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/listener"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// Watches of core Events get no bookmarks, since the API server does not cache them, so the position of a quiet stream
// would stay until the server has forgotten it. It moves by two proofs together: a watch was silent from its begin to
// its orderly end, and a list after it equals what the sinks were told. The silence alone might be that of an API
// server that is cut off from etcd; the list alone does not show what was created and deleted. The new position is the
// version that the server had when the watch began.

// moveQuiet moves the positions of a stream that was silent, if it is proven to be quiet.
func (i *Informer) moveQuiet(ctx context.Context) error {
	version := i.silence.take()
	if version == "" || change.CompareVersions(version, i.brought) <= 0 {
		return nil
	}
	i.turns.take()
	compares, seats := i.compares(), slices.Clone(i.seats)
	i.turns.give()
	if compares || !i.isUnchanged(ctx, seats, version) {
		return ctx.Err()
	}
	i.turns.take()
	defer i.turns.give()
	i.brings(version)
	i.bookmark(strings.Clone(version))
	return nil
}

// isUnchanged says whether a list of now, of at least the version, equals what each seat was told. A failure proves
// nothing; the next watch reports it.
func (i *Informer) isUnchanged(ctx context.Context, seats []*listener.Seat, version string) bool {
	p, start, last := page{limit: pageSize}, "", ""
	keys := map[string]struct{}{}
	for {
		meta, err := i.origin.collection.list(ctx, p, func(object frame.Object) error {
			key := change.Key{Namespace: object.Namespace, Name: object.Name}
			if last = key.String(); last <= start {
				return errUnsorted
			}
			keys[last] = struct{}{}
			for _, seat := range seats {
				row, err := seat.Newest(checkpoint.Object{Resource: i.way.Resource, Key: key})
				if err != nil || !row.Exists() || row.UID != object.UID || row.At.Version != object.ResourceVersion {
					return errChanged
				}
			}
			return nil
		})
		if err != nil || change.CompareVersions(meta.ResourceVersion, version) < 0 {
			return false
		}
		upTo := last
		if meta.Continue == "" {
			upTo = ""
		}
		for _, seat := range seats {
			for key, err := range seat.Has(i.way.Resource, string(i.way.Scope), start, upTo) {
				if err != nil {
					return false
				}
				if _, listed := keys[key.String()]; listed {
					continue
				}
				if row, err := seat.Newest(checkpoint.Object{Resource: i.way.Resource, Key: key}); err != nil || row.Exists() {
					return false
				}
			}
		}
		p.exactly, p.token = meta.ResourceVersion, meta.Continue
		if start = last; p.token == "" {
			return true
		}
		clear(keys)
	}
}

// retireFor tells the sink that nothing of the stream exists any more.
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
			i.Observer.Comparing(*i.stream, snapshot)
			frame(change.Gap)
			frame(change.SnapshotBegin)
		}
		gone := i.gone(of, last, asOf)
		gone.Snapshot = snapshot
		if _, err := i.shapeFor(seat, gone); err != nil {
			return err
		}
		snapshot.Counts.Deleted++
		seat.Tell(gone, listener.Deleted(of, i.way.Scope, last, asOf))
	}
	frame(change.SnapshotEnd)
	i.Observer.Compared(*i.stream, snapshot)
	seat.Over(&i.way, i.stream)
	return nil
}

// begin has the sinks go on with the watch that is about to be opened, and returns where that begins: at the lowest of
// their positions (rule lowest).
func (i *Informer) begin(ctx context.Context) (from string, err error) {
	standing, err := i.standing(ctx)
	if err != nil {
		return "", err
	}
	i.turns.take()
	defer i.turns.give()
	left := i.seats[:0:0]
	for _, seat := range i.seats {
		if !seat.IsOffered(i.stream) || seat.IsOver() {
			continue
		}
		i.comparer.release(seat)
		seat.Begin(&i.way, *standing, i.frame)
		at := seat.Known(&i.way).From
		if at.History != standing.Now.History {
			continue // it is over by now
		}
		if left = append(left, seat); from == "" || change.CompareVersions(at.Version, from) < 0 {
			from = at.Version
		}
	}
	i.seat(left)
	i.stale, i.forgot = false, ""
	if len(left) == 0 {
		return "", errNobody
	}
	i.comparer.is = i.compares()
	if i.from = from; change.CompareVersions(from, i.brought) > 0 { // no watch has brought what is between them
		i.brought, i.proof = from, proof{}
	}
	return from, nil
}

// errNobody says that the watch has no sink any more.
var errNobody = errors.New("no sink is given the stream")

// compares says whether a comparison of any sink is under way; the caller has the turn.
func (i *Informer) compares() bool {
	for _, seat := range i.seats {
		if len(seat.Comparisons(&i.way)) > 0 {
			return true
		}
	}
	return false
}

// standing is where the server stands. A position means something only in its own history: another cluster at the same
// address, and an etcd that was restored to the past, begin a new one.
//
// A watch from a version that the server has not reached is silent until it gets there, and loses everything in
// between. After a failure, the proof is asked for, too.
func (i *Informer) standing(ctx context.Context) (*listener.Standing, error) {
	uid := ""
	if i.ClusterUID != "" {
		var err error
		if uid, err = i.origin.cluster(ctx, i.origin.doubted()); err != nil {
			return nil, err
		}
	}
	fresh, highest := false, checkpoint.Point{}
	known := checkpoint.History(0)
	i.turns.take()
	for _, seat := range i.seats {
		is := seat.Known(&i.way)
		fresh = fresh || is.From.History == 0
		known = max(known, is.History)
		if is.Highest.After(highest) {
			highest = is.Highest
		}
	}
	brought, p := i.brought, i.proof
	i.turns.give()
	ask := i.origin.present
	if fresh {
		ask = i.origin.watchable
	}
	now, err := ask(ctx)
	if err != nil {
		return nil, err
	}
	epoch, err := i.shared.history(uid, known)
	if err != nil {
		return nil, err
	}
	restored := highest.History == checkpoint.HistoryOf(epoch) && change.CompareVersions(now, highest.Version) < 0
	if !restored && epoch == i.epoch && i.origin.suspect.Load() {
		if restored, err = i.origin.refutes(ctx, brought, p); err != nil {
			return nil, err
		}
	}
	if restored {
		if epoch, err = i.shared.newHistory(uid, epoch); err != nil {
			return nil, err
		}
	}
	var why change.Reason
	if i.forgot != "" {
		why = i.redefined(ctx)
	}
	i.turns.take()
	defer i.turns.give()
	if epoch != i.epoch {
		i.epoch, i.proof, i.brought = epoch, proof{}, ""
	}
	return &listener.Standing{
		Now: checkpoint.Point{History: checkpoint.HistoryOf(epoch), Version: now}, Stale: i.stale, Forgot: i.forgot, Why: why,
	}, nil
}

// redefined is the reason of a gap: Redefined for a custom resource whose definition was changed since the last watch
// that worked, or since the refused watch began, because the server begins its history of the resource anew then. Other
// writes of a definition leave its generation. The definitions are read after the failure.
func (i *Informer) redefined(ctx context.Context) change.Reason {
	if !IsCustom(i.stream.Resource.String()) {
		return change.Gone
	}
	client, since := i.Client, i.origin.doubted()
	now, err := client.defined.get(ctx, since, maxAge, func(ctx context.Context) (*Definitions, error) {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		return readDefinitions(ctx, client.rest.Get().MaxRetries(0))
	})
	if err != nil {
		return change.Gone
	}
	one := now.byName[i.stream.Resource.String()]
	for _, version := range []string{i.origin.watched, i.from} {
		if version != "" && change.CompareVersions(one.ResourceVersion, version) > 0 && one.Generation != i.generation.Load() {
			i.generation.Store(one.Generation)
			return change.Redefined
		}
	}
	return change.Gone
}

// frame makes the record of a frame for a sink. The caller has the turn.
func (i *Informer) frame(seat *listener.Seat, item *checkpoint.Item) *change.Record {
	c := item.Comparison
	snapshot := &change.Snapshot{
		ID: c.ID, Reason: c.Reason, From: item.From.Version, Since: i.heard, ResourceVersion: item.At.Version,
		Epoch: change.ClusterOf(i.epoch), Sinks: []string{seat.Name},
	}
	op := change.SnapshotBegin
	if item.Kind == checkpoint.Gap {
		op = change.Gap
	} else {
		i.Observer.Comparing(*i.stream, snapshot)
		if c.Full {
			i.fresh[c.ID] = true
		}
	}
	return i.framing(op, snapshot, item.Scope)
}

// framing makes a record that frames a snapshot of the scope.
func (i *Informer) framing(op change.Op, snapshot *change.Snapshot, scope checkpoint.Scope) *change.Record {
	rec := &change.Record{
		Stream: i.stream, Op: op, ResourceVersion: snapshot.ResourceVersion, Received: time.Now(), Snapshot: snapshot,
		Epoch: i.epoch,
	}
	if scope != i.way.Scope {
		rec.Key.Namespace, snapshot.Limits.Namespace = string(scope), string(scope)
	}
	return rec
}

// refuse ends the stream for this life if the error is an *UnorderedError, and tells the sinks so. It returns the
// error.
func (i *Informer) refuse(ctx context.Context, err error) error {
	if _, unordered := errors.AsType[*UnorderedError](err); !unordered || i.shared.isRefused() != nil {
		return err
	}
	i.shared.refused.Store(&err)
	for _, seat := range i.seats {
		at := seat.Known(&i.way).From
		if at.Version == "" {
			continue
		}
		gap := change.Snapshot{Reason: change.Stale, From: at.Version, ResourceVersion: at.Version, Sinks: []string{seat.Name}}
		i.tellUnreadable(seat, gap, err)
	}
	return err
}

// tellUnreadable tells a sink of a gap of the stream, since something cannot be read.
func (i *Informer) tellUnreadable(seat *listener.Seat, gap change.Snapshot, why error) {
	gap.ID = gap.ResourceVersion + checkpoint.PartSuffix
	rec := i.framing(change.Gap, &gap, i.way.Scope)
	rec.Remarks = &change.Remarks{Rejected: change.Unreadable}
	i.Observer.tellUnreadable(rec, why)
	i.tellBeside(seat, rec)
}

// ask notes what is asked for, or withdrawn, for a sink. The caller has the turn.
func (i *Informer) ask(seat *listener.Seat, a ask) {
	way := i.way
	if a.limits.Namespace != "" {
		way.Scope = checkpoint.Scope(a.limits.Namespace)
	}
	c := &i.comparer
	is := func(one ask) bool { return one.sink == a.sink && one.limits == a.limits }
	switch part := a.limits.Name != "" || a.limits.Selector != ""; {
	case part && a.reason != "":
		if !slices.Contains(c.chosen, a) {
			c.chosen = append(c.chosen, a)
		}
	case part:
		if c.chosen = slices.DeleteFunc(c.chosen, is); c.current != nil && is(*c.current) {
			c.current = nil
		}
	case a.reason != "":
		seat.Ask(&way, a.reason)
	default:
		seat.Withdraw(&i.way, string(way.Scope))
	}
}

// tellBeside tells a sink of a frame that changes nothing that is saved.
func (i *Informer) tellBeside(seat *listener.Seat, rec *change.Record) {
	seat.Tell(rec, checkpoint.Item{Kind: checkpoint.Sync, Resource: i.way.Resource, Scope: i.way.Scope})
}
