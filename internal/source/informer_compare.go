package source

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/listener"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// reading is a list that is read beside the watch, page by page, in any number of versions. A page that fails is read
// again: the sinks' rows say what was told already.
type reading struct {
	*Informer
	epoch   string // of the history that is listed
	scope   checkpoint.Scope
	parts   []*comparedSink
	chosen  *ask
	at      page
	pageOf  int                 // the number of the watch that the page is read beside
	oldest  string              // the version of the oldest page
	newest  string              // that of the newest
	start   string              // the joined key after which the page begins
	last    string              // the joined key that was listed last
	keys    map[string]struct{} // the joined keys of the page, or of the whole list if that is not sorted
	synced  map[string]struct{} // the joined keys after done, or of all of an unsorted list, that were compared
	done    string              // the joined key up to which a sorted list was compared
	begun   bool                // reading of the page has begun
	waiting []frame.Object      // objects of the page for the next turn
	size    int                 // bytes of waiting
	nobody  bool                // an item has no name that can be read
	silent  bool                // the watch was silent for long enough
}

// comparedSink is a reading as one sink sees it.
type comparedSink struct {
	holding
	of         *reading
	comparison checkpoint.Comparison
	snapshot   *change.Snapshot
	counts     change.Counts
	ahead      int              // so many bytes may wait for the sink
	until      checkpoint.Point // the watch has to bring this before the end
	suspects   []missing
	known      map[checkpoint.Object]checkpoint.Row // of the waiting objects
}

// missing is a key that the sink has and the list lacks. oldest and newest are the versions of the pages: the list may
// lack what was told after the oldest, and the watch has brought every delete once it has passed the newest.
type missing struct {
	key            change.Key
	oldest, newest checkpoint.Point
}

// take adds an object of the page to those that wait, and compares them when there are enough.
func (r *reading) take(ctx context.Context, object *frame.Object) error {
	r.waiting = append(r.waiting, *object)
	if r.size += len(object.JSON); len(r.waiting) < turnObjects && r.size < turnBytes {
		return nil
	}
	return r.compareWaiting(ctx)
}

// compareWaiting compares the objects that wait, in one turn.
func (r *reading) compareWaiting(ctx context.Context) error {
	if err := r.Rate.WaitN(ctx, len(r.waiting)); err != nil {
		return fmt.Errorf("wait for the rate of snapshots: %w", err)
	}
	if err := r.awaitSinks(ctx); err != nil {
		return err
	}
	give, err := r.turns.takeIn(ctx)
	if err != nil {
		return err
	}
	defer give()
	if err := r.check(); err != nil {
		return err
	}
	if err := r.lookUpRows(); err != nil {
		return err
	}
	for at := range r.waiting {
		if err := r.compareOne(&r.waiting[at]); err != nil {
			return err
		}
	}
	clear(r.waiting)
	r.waiting, r.size = r.waiting[:0], 0
	return nil
}

// lookUpRows finds what each sink was told last of the waiting objects, including by a record that is held back.
func (r *reading) lookUpRows() (err error) {
	all := make([]checkpoint.Object, 0, len(r.waiting))
	for at := range r.waiting {
		if object := &r.waiting[at]; object.Name != "" {
			all = append(all, checkpoint.Object{Resource: r.way.Resource, Key: change.Key{Namespace: object.Namespace, Name: object.Name}})
		}
	}
	for _, p := range r.parts {
		for _, of := range all {
			p.meets(of.Key)
		}
		if p.known, err = p.NewestOf(all); err != nil {
			return fmt.Errorf("find out what sink %s knows of %s: %w", p.Name, r.stream, err)
		}
	}
	return nil
}

// awaitSinks returns when each sink has room for more. The caller has not got the turn, so the watch goes on. If there
// are other sinks, one that takes nothing for maxStuck leaves: it goes on with a watch and a list of its own.
func (r *reading) awaitSinks(ctx context.Context) error {
	for _, p := range slices.Clone(r.parts) {
		if err := r.awaitSink(ctx, p); err != nil {
			return fmt.Errorf("wait for the sinks of a snapshot of %s: %w", r.stream, err)
		}
	}
	return nil
}

func (r *reading) awaitSink(ctx context.Context, p *comparedSink) error {
	began := time.Now()
	for {
		within, end := context.WithTimeout(ctx, maxStuck)
		waited, err := p.Below(within, p.ahead)
		end()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && !r.giveUp(p):
			continue
		case waited && err == nil:
			p.ahead = nextAhead(p.ahead, time.Since(began))
		}
		return nil
	}
}

// giveUp takes the sink out of the watch, unless it is the only one, and says whether it is out.
func (r *reading) giveUp(p *comparedSink) bool {
	r.turns.take()
	defer r.turns.give()
	if slices.Contains(r.seats, p.Seat) {
		if len(r.seats) == 1 {
			return false
		}
		r.leave(p.Seat)
		r.shared.Join(p.Intake)
	}
	return true
}

// check drops the sinks that are not compared any more, and returns an error if the page does not count: another watch
// is open, which may be of another history, or no sink is left. The caller has the turn.
func (r *reading) check() error {
	r.shared.askedOf(r.seats, r.ask) // a snapshot may have been withdrawn
	r.parts = slices.DeleteFunc(r.parts, func(p *comparedSink) bool {
		on := p.goesOn()
		if !on {
			p.leave()
		}
		return !on
	})
	switch {
	case len(r.parts) == 0:
		return errNobody
	case r.turns.open != r.pageOf:
		return errWatchEnded
	case r.Informer.epoch != r.epoch:
		return errNobody
	}
	return nil
}

// goesOn says whether the comparison is still under way.
func (p *comparedSink) goesOn() bool {
	is := func(c checkpoint.Comparison) bool { return c.ID == p.comparison.ID }
	switch {
	case !slices.Contains(p.of.seats, p.Seat):
		return false
	case p.of.chosen != nil:
		return !p.IsOver() && p.of.comparer.current == p.of.chosen
	}
	return slices.ContainsFunc(p.Comparisons(&p.of.way), is)
}

// leave ends the sink's snapshot before its end. The caller has the turn.
func (p *comparedSink) leave() {
	r := p.of
	p.release(false) // this record was compared
	if r.chosen != nil && r.comparer.current == r.chosen {
		r.askAgain(*r.chosen)
	}
	if p.comparison.Full {
		r.Observer.Abandoned(*r.stream, p.snapshot)
	}
}

// compareOne compares an object with what each sink was told last of its key. The caller has the turn.
func (r *reading) compareOne(object *frame.Object) error {
	if object.Name == "" {
		r.listedNobody(cmp.Or(object.Err, errNoName))
		return nil
	}
	if err := r.origin.checkVersion(object, r.at.exactly); err != nil {
		return err
	}
	key := change.Key{Namespace: object.Namespace, Name: object.Name}
	joined := key.String()
	if !r.origin.unsorted.Load() && joined <= r.last {
		return errUnsorted
	}
	r.last = joined
	r.keys[joined] = struct{}{}
	for _, p := range r.parts {
		if err := p.judge(object, key); err != nil {
			return err
		}
	}
	r.synced[joined] = struct{}{}
	return nil
}

// listedNobody handles an item whose name cannot be read. An object that a sink has and the list seems to lack may be
// that item, so no delete is told.
func (r *reading) listedNobody(why error) {
	for _, p := range r.parts {
		if !r.nobody {
			gap := change.Snapshot{Reason: change.Policy, From: p.snapshot.From, ResourceVersion: p.snapshot.ResourceVersion}
			r.tellUnreadable(p.Seat, gap, why)
		}
	}
	r.nobody = true
}

// judge judges a listed object, and tells the sink what follows.
func (p *comparedSink) judge(object *frame.Object, key change.Key) error {
	r := p.of
	of := checkpoint.Object{Resource: r.way.Resource, Key: key}
	last, is := p.known[of]
	if delete(p.known, of); !is { // an unsorted list may have it twice
		var err error
		if last, err = p.newest(of); err != nil {
			return err
		}
	}
	history := checkpoint.HistoryOf(r.epoch)
	listed := listener.Listed{
		UID: object.UID, At: checkpoint.Point{History: history, Version: object.ResourceVersion},
		List: checkpoint.Point{History: history, Version: p.snapshot.ResourceVersion}, Position: p.Passed(r.way.Resource, key.Namespace),
	}
	switch listener.Judge(&listed, last) {
	case listener.ForWatch:
		if listed.At.After(p.until) {
			p.until = listed.At
		}
	case listener.Unchanged:
		_, sent := r.synced[key.String()]
		if sent = sent || key.String() <= r.done && !r.origin.unsorted.Load(); p.comparison.Full && !sent {
			return p.emit(change.Sync, object, last)
		}
	case listener.Another:
		if err := p.emitGone(of, last, listed.At.Below(), checkpoint.Point{}); err != nil {
			return err
		}
		last = checkpoint.Row{}
		return p.emit(change.Replaced, object, last)
	case listener.Changed:
		return p.emit(change.Replaced, object, last)
	}
	return nil
}

// newest is what the sink was told last of the object.
func (p *comparedSink) newest(of checkpoint.Object) (checkpoint.Row, error) {
	p.meets(of.Key)
	last, err := p.Newest(of)
	if err != nil {
		err = fmt.Errorf("find out what sink %s knows of %s in %s: %w", p.Name, of.Key, p.of.stream, err)
	}
	return last, err
}

// emit tells the sink of a listed object.
func (p *comparedSink) emit(op change.Op, object *frame.Object, last checkpoint.Row) error {
	r := p.of
	rec := new(change.Record)
	*rec = r.record(op, object)
	rec.Snapshot = p.snapshot
	was, err := r.shapeFor(p.Seat, rec)
	if err != nil {
		return err
	}
	rec.Keep = rec.Keep && was.Version != rec.ResourceVersion // an unchanged object is kept already, as a rule
	r.Observer.tellUnreadable(rec, object.Err)
	item := checkpoint.Item{
		Kind: checkpoint.Told, Resource: r.way.Resource, Scope: r.way.Scope,
		At:  checkpoint.Point{History: checkpoint.HistoryOf(rec.Epoch), Version: rec.ResourceVersion},
		Key: rec.Key, UID: rec.UID,
	}
	if op == change.Sync {
		item.Kind, item.Comparison = checkpoint.Sync, p.comparison
		p.counts.Synced++
	} else {
		p.counts.Replaced++
		if !rec.Filtered {
			p.corrected(change.Correction{
				Op: change.Replaced, Key: rec.Key, UID: rec.UID, Version: rec.ResourceVersion,
				Had: last.UID, HadVersion: last.At.Version,
			})
		}
	}
	r.Observer.Received(rec)
	p.hold(rec, item)
	return nil
}

// emitGone tells the sink that its object is gone, at asOf. lacks is the list that lacks it; zero if the list has
// another one of the name.
func (p *comparedSink) emitGone(of checkpoint.Object, last checkpoint.Row, asOf, lacks checkpoint.Point) error {
	r := p.of
	rec := r.gone(of, last, asOf)
	rec.Snapshot = p.snapshot
	if _, err := r.shapeFor(p.Seat, rec); err != nil {
		return err
	}
	p.counts.Deleted++
	if !rec.Filtered {
		p.corrected(change.Correction{Op: change.Deleted, Key: of.Key, Had: last.UID, HadVersion: last.At.Version})
	}
	r.Observer.Received(rec)
	gone := listener.Deleted(of, r.way.Scope, last, asOf)
	gone.List = lacks
	p.hold(rec, gone)
	return nil
}

// corrected reports drift: any difference that a full snapshot finds, unless the sink's log has lost records. The other
// sinks are then compared, too.
func (p *comparedSink) corrected(c change.Correction) {
	if c.Reason = p.comparison.Reason; !c.Reason.Full() || c.Reason == change.Lost {
		return
	}
	p.of.Observer.Corrected(*p.of.stream, c)
	p.of.shared.drifted(&p.of.way, func(sink *listener.Intake) bool {
		return slices.ContainsFunc(p.of.parts, func(other *comparedSink) bool { return other.Intake == sink })
	})
}

// tellOneMissing tells the sink that the suspect is gone, if it is. isOpen says that the watch has not passed the list
// yet. The caller has the turn.
func (p *comparedSink) tellOneMissing(s missing) (isOpen bool, err error) {
	r := p.of
	of := checkpoint.Object{Resource: r.way.Resource, Key: s.key}
	last, err := p.newest(of)
	if err != nil {
		return false, err
	}
	position := p.Passed(r.way.Resource, s.key.Namespace)
	if r.silent { // it has brought everything
		position = s.newest
	}
	switch listener.JudgeMissing(s.oldest, s.newest, position, last) {
	case listener.Open:
		return true, nil
	case listener.Exists:
		return false, nil
	}
	return false, p.emitGone(of, last, listener.AsOf(s.newest, last), s.newest)
}

// tryEnd tells the sink of the end if there are no suspects left, and the watch has brought what the list has left to
// it. The caller has the turn.
func (p *comparedSink) tryEnd() (over bool) {
	r := p.of
	reached := !p.until.After(p.Known(&r.way).From) || change.CompareVersions(r.brought, p.until.Version) >= 0
	if len(p.suspects) > 0 || p.until.Version != "" && !r.silent && !reached {
		return false
	}
	p.release(true)
	snapshot := *p.snapshot
	snapshot.Counts, snapshot.ResourceVersion = p.counts, r.newest
	end := r.framing(change.SnapshotEnd, &snapshot, r.scope)
	if r.chosen != nil {
		end = r.framing(change.SnapshotEnd, &snapshot, r.way.Scope)
		limits := &r.chosen.limits
		p.Tell(end, checkpoint.Item{
			Kind: checkpoint.End, Resource: r.way.Resource, Scope: r.way.Scope, Comparison: p.comparison,
			Key: change.Key{Namespace: limits.Namespace, Name: limits.Name}, Selection: &limits.Selector,
		})
	} else {
		p.End(&r.way, p.comparison, end)
	}
	r.Observer.Compared(*r.stream, &snapshot)
	return true
}
