package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/listener"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// comparer reads lists beside the watch, in a goroutine of its own while there is anything to compare. One list serves
// all sinks that are compared with the same part of the stream.
type comparer struct {
	is      bool     // a comparison of any sink is under way; whoever has the turn may use it
	reading *reading // nil while nothing is read; as is

	mu      sync.Mutex      // guards the following
	running context.Context // of the informer; nil before its first watch
	runs    bool
	again   bool // it is to look once more
	over    sync.WaitGroup

	chosen  []ask // snapshots of chosen objects that are asked for; as is
	current *ask  // the one that is read; as is
}

// look has it look what is to be compared.
func (c *comparer) look(i *Informer) {
	c.mu.Lock()
	ctx := c.running
	c.mu.Unlock()
	if ctx != nil && ctx.Err() == nil {
		c.wake(ctx, i)
	}
}

// wake begins to compare, if anything is to be, for as long as ctx lives.
func (c *comparer) wake(ctx context.Context, i *Informer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = ctx
	if c.again = true; c.runs {
		return
	}
	c.runs = true
	c.over.Go(func() {
		for c.goesOn() {
			i.readAll(ctx)
		}
	})
}

func (c *comparer) goesOn() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs, c.again = c.again, false
	return c.runs
}

// wait returns when nobody compares any more.
func (c *comparer) wait() { c.over.Wait() }

// release lets go what is held back for the sink: another comparison may begin. The caller has the turn.
func (c *comparer) release(seat *listener.Seat) {
	if c.reading == nil {
		return
	}
	for _, p := range c.reading.parts {
		if p.Seat == seat {
			p.release(false)
		}
	}
}

// meets prepares for a record of the watch: what is held back of its object goes first. The caller has the turn.
func (c *comparer) meets(key change.Key) {
	if c.reading == nil {
		return
	}
	for _, p := range c.reading.parts {
		if p.held != nil && p.held.Key == key {
			p.release(false)
		}
	}
}

// ask notes what is asked for of a sink; the caller has the turn.
func (i *Informer) ask(seat *listener.Seat, a ask) {
	way := i.way
	if a.limits.Namespace != "" {
		way.Scope = checkpoint.Scope(a.limits.Namespace)
	}
	c := &i.comparer
	is := func(one ask) bool { return one.sink == a.sink && one.limits == a.limits }
	switch part := a.limits.Name != "" || a.limits.Selector != ""; {
	case part && a.reason != "":
		c.chosen = append(c.chosen, a)
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

// readAll reads until nothing is to be compared.
func (i *Informer) readAll(ctx context.Context) {
	for ctx.Err() == nil {
		r, err := i.nextReading(ctx)
		if r == nil || err != nil {
			return
		}
		leave, err := i.Gate.enter(ctx, othersLast)
		if err != nil {
			return
		}
		_ = r.try(ctx) // it has told, and what is left is found again
		leave()
		r.close()
	}
}

// nextReading is the next list that is to be read, nil where there is none.
func (i *Informer) nextReading(ctx context.Context) (*reading, error) {
	give, err := i.turns.takeIn(ctx)
	if err != nil {
		return nil, err
	}
	defer give()
	if i.from == "" || ctx.Err() != nil {
		return nil, nil // the watch begins it
	}
	i.shared.asked(i)
	for _, seat := range i.seats {
		seat.Due(&i.way, i.frame)
		for _, c := range seat.Comparisons(&i.way) {
			if c.Full && !i.fresh[c.ID] { // an earlier life, or another informer, has read a part of it
				seat.Renew(&i.way, c, i.frame)
			}
		}
	}
	if r := i.chosenReading(); r != nil {
		return r, nil
	}
	r := &reading{Informer: i, epoch: i.epoch, synced: map[string]struct{}{}}
	found := false
	for _, seat := range i.seats {
		for _, c := range seat.Comparisons(&i.way) {
			if !found {
				r.scope, found = checkpoint.Scope(c.Namespace), true
			}
			if r.scope == checkpoint.Scope(c.Namespace) {
				r.add(seat, c)
				delete(i.fresh, c.ID)
			}
		}
	}
	i.comparer.is = found
	if !found {
		return nil, nil
	}
	i.comparer.reading = r
	return r, nil
}

// chosenReading begins to read the next snapshot of chosen objects, nil where there is none. Nothing follows from it for
// others.
func (i *Informer) chosenReading() *reading {
	c := &i.comparer
	for len(c.chosen) > 0 {
		one := c.chosen[0]
		c.chosen = c.chosen[1:]
		at := slices.IndexFunc(i.seats, func(seat *listener.Seat) bool { return seat.Intake == one.sink })
		if at < 0 {
			continue
		}
		seat := i.seats[at]
		r := &reading{Informer: i, epoch: i.epoch, synced: map[string]struct{}{}, chosen: &one, scope: cmp.Or(checkpoint.Scope(one.limits.Namespace), i.way.Scope)}
		id := seat.PartID(seat.Known(&i.way).Highest.Version)
		p := r.add(seat, checkpoint.Comparison{ID: id, Full: true, Reason: one.reason, Namespace: string(r.scope)})
		p.snapshot.Limits = one.limits
		i.Observer.Reconciling(*i.stream, p.snapshot)
		seat.Tell(i.framing(change.SnapshotBegin, p.snapshot, i.way.Scope), checkpoint.Item{Kind: checkpoint.Sync, Resource: i.way.Resource, Scope: i.way.Scope})
		c.current, c.reading, c.is = &one, r, true
		return r
	}
	return nil
}

// reading is a list that is read beside the watch, page by page, in any number of versions. A page that fails is read
// again: what is told already the sinks' rows say.
type reading struct {
	*Informer
	epoch   string // of the history that is listed
	scope   checkpoint.Scope
	parts   []*comparedSink
	chosen  *ask
	at      page
	pageOf  int                 // the number of the watch that the page is read beside
	oldest  string              // the version of the oldest page
	start   string              // the joined key after which the page begins
	last    string              // the joined key that was listed last
	keys    map[string]struct{} // the joined keys of the page; of the whole list, where that is not sorted
	synced  map[string]struct{} // those after done that were sent unchanged, or of the whole list, where that is not sorted
	done    string              // the joined key up to which those of a sorted list were sent
	begun   bool                // the page was begun to be read
	waiting []frame.Object      // of the page, for the next turn
	size    int
	nobody  bool // something is listed of which nobody knows what it is
	silent  bool // the watch has had nothing to tell for long enough
	entries int  // that were not listed, since the watch had its turn
}

// comparedSink is a reading as one sink sees it.
type comparedSink struct {
	*listener.Seat
	of         *reading
	comparison checkpoint.Comparison
	snapshot   *change.Snapshot
	counts     change.Counts
	pace       pace
	until      checkpoint.Point // the watch is to bring this before the end
	suspects   []missing
	held       *change.Record // the last one so far; it goes when another one follows
	item       checkpoint.Item
}

// missing is a key that the sink has and a list has not. Its pages may be of several versions: what was told after the
// oldest one the list need not have, and what is gone for that the watch has told when it has passed the newest.
type missing struct {
	key            change.Key
	oldest, newest checkpoint.Point
}

func (r *reading) add(seat *listener.Seat, c checkpoint.Comparison) *comparedSink {
	version, _, _ := strings.Cut(c.ID, ".")
	p := &comparedSink{Seat: seat, of: r, comparison: c, snapshot: &change.Snapshot{
		ID: c.ID, Reason: cmp.Or(c.Reason, change.Stale), ResourceVersion: version, Epoch: change.ClusterOf(r.epoch), Sinks: []string{seat.Name},
	}}
	if r.scope != r.way.Scope {
		p.snapshot.Limits.Namespace = string(r.scope)
	}
	r.parts = append(r.parts, p)
	if r.at.exactly == "" || change.CompareVersions(version, r.at.exactly) > 0 {
		r.at = page{limit: pageSize, exactly: version}
	}
	return p
}

// try reads until the end, in spite of failures, until ctx ends or nobody is compared any more.
func (r *reading) try(ctx context.Context) error {
	failed := false
	err := backoff.RetryNotify(func() error {
		err := r.read(ctx)
		var unordered *UnorderedError
		switch {
		case err == nil, errors.Is(err, errNobody), ctx.Err() != nil:
		case errors.As(err, &unordered):
			r.turns.take()
			err = r.refuse(ctx, err)
			r.turns.give()
			r.Observer.Failed(*r.stream, err)
			r.end()
		case errors.Is(err, errUnsorted):
			r.origin.unsorted.Store(true) // for good: this server does not sort
			r.begin(r.at.exactly)
			return err
		default:
			return err
		}
		if err != nil {
			return backoff.Permanent(err)
		}
		return nil
	}, backoff.WithContext(snapshotBackoff(), ctx), func(err error, _ time.Duration) {
		if failed = !errors.Is(err, errWatchEnded) && !errors.Is(err, errUnsorted); failed {
			r.Observer.Failed(*r.stream, fmt.Errorf("read a snapshot of %s: %w", r.stream, err))
		}
	})
	if failed && err == nil {
		r.Observer.Watching(*r.stream, r.at.exactly) // it works again
	}
	return err
}

// begin begins the list at exactly the version.
func (r *reading) begin(version string) {
	r.at, r.oldest, r.start, r.last, r.keys, r.begun = page{limit: pageSize, exactly: version}, "", "", "", nil, false
	for _, p := range r.parts {
		p.suspects = nil // they are found again
	}
}

// read reads pages until the end of the list, and then waits for what the list leaves to the watch.
func (r *reading) read(ctx context.Context) error {
	for {
		if err := r.beside(ctx); err != nil { // it is over where the stream has gone on in another history
			return err
		}
		if err := r.checkCluster(ctx); err != nil {
			return err
		}
		began := time.Now()
		listed := r.origin.collection.within(r.limits())
		n := 0
		meta, err := listed.list(ctx, r.at, func(object frame.Object) error { n++; return r.take(ctx, &object) })
		if err = r.origin.versions.ended(err); isGone(err) {
			if err := r.listAgain(ctx, err); err != nil {
				return err
			}
			continue
		}
		if err == nil {
			err = r.compare(ctx)
		}
		if err == nil {
			err = r.turnPage(ctx, &meta)
		}
		if err != nil {
			return err
		}
		r.Observer.tellListed(*r.stream, n, &meta)
		if r.at.token == "" {
			return r.finish(ctx)
		}
		r.at.limit = nextLimit(r.at.limit, time.Since(began))
	}
}

func (r *reading) limits() change.Limits {
	switch {
	case r.chosen != nil:
		return r.chosen.limits
	case r.scope != r.way.Scope:
		return change.Limits{Namespace: string(r.scope)}
	}
	return change.Limits{}
}

// beside begins a page beside the watch that is open.
func (r *reading) beside(ctx context.Context) error {
	if err := r.turns.awaitWatch(ctx); err != nil {
		return err
	}
	defer r.turns.give()
	r.pageOf = r.turns.open
	clear(r.waiting)
	r.waiting, r.size, r.nobody = r.waiting[:0], 0, false
	if r.last = r.start; r.keys == nil || !r.origin.unsorted.Load() {
		r.keys = map[string]struct{}{}
	}
	if r.begun { // it may have taken longer than the watch beside it
		r.at.limit = max(r.at.limit/2, firstPage)
	}
	r.begun = true
	return r.check()
}

// check says what the page is worth: nothing once another watch is open, whose server may speak of another history. The
// caller has the turn.
func (r *reading) check() error {
	r.shared.asked(r.Informer) // for what is withdrawn
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
	if p.of.chosen != nil {
		return !p.IsOver() && p.of.comparer.current == p.of.chosen
	}
	return slices.ContainsFunc(p.Comparisons(&p.of.way), func(c checkpoint.Comparison) bool { return c.ID == p.comparison.ID }) &&
		slices.Contains(p.of.seats, p.Seat)
}

// checkCluster asks who would answer. The watch may go on over an old connection.
func (r *reading) checkCluster(ctx context.Context) error {
	cluster := change.ClusterOf(r.epoch)
	if cluster == "" || r.ClusterUID == "" {
		return nil
	}
	if uid, err := r.origin.cluster(ctx, time.Time{}); err != nil || uid == cluster {
		return err
	}
	r.origin.trust.doubt()
	return errOtherCluster
}

// listAgain makes the list go on at a newer version, where the server has forgotten its own: after the page before, if
// the server says how, or from the beginning. The rules hold for pages of any version.
func (r *reading) listAgain(ctx context.Context, why error) error {
	version, err := r.origin.askVersion(ctx, r.origin.collection)
	if err != nil {
		return err
	}
	var status apierrors.APIStatus
	if errors.As(why, &status) && status.Status().ListMeta.Continue != "" {
		r.at.token, r.at.exactly, r.begun = status.Status().ListMeta.Continue, "", false
		return nil
	}
	r.begin(version)
	return nil
}

// take takes an object of the page, and compares those that wait when there are enough.
func (r *reading) take(ctx context.Context, object *frame.Object) error {
	r.waiting = append(r.waiting, *object)
	if r.size += len(object.JSON); len(r.waiting) < turnObjects && r.size < turnBytes {
		return nil
	}
	return r.compare(ctx)
}

// compare compares the objects that wait, in one turn.
func (r *reading) compare(ctx context.Context) error {
	if err := r.Rate.wait(ctx, len(r.waiting)); err != nil {
		return err
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
	for at := range r.waiting {
		if err := r.compareOne(&r.waiting[at]); err != nil {
			return err
		}
	}
	clear(r.waiting)
	r.waiting, r.size = r.waiting[:0], 0
	return nil
}

// awaitSinks returns when each sink has room for more. Nobody's turn is held meanwhile, so the watch goes on.
func (r *reading) awaitSinks(ctx context.Context) error {
	for _, p := range r.parts {
		began := time.Now()
		waited, err := p.Below(ctx, p.pace.limit())
		if err != nil {
			return fmt.Errorf("wait for the sinks of a snapshot of %s: %w", r.stream, err)
		}
		if waited {
			p.pace.waited(time.Since(began))
		}
	}
	return nil
}

// compareOne compares an object with what each sink was told last of its key. The caller has the turn.
func (r *reading) compareOne(object *frame.Object) error {
	if object.Name == "" {
		r.listedNobody(cmp.Or(object.Err, errNoName))
		return nil
	}
	if err := r.origin.versions.check(object, r.at.exactly); err != nil {
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
		if err := p.compare(object, key); err != nil {
			return err
		}
	}
	r.synced[joined] = struct{}{}
	return nil
}

// listedNobody is for an item of which not even the name can be told. What a sink has at its place in the list may be
// it, so nothing there is told to be gone.
func (r *reading) listedNobody(why error) {
	for _, p := range r.parts {
		if !r.nobody {
			r.tellUnreadable(p.Seat, change.Snapshot{Reason: change.Policy, From: p.snapshot.From, ResourceVersion: p.snapshot.ResourceVersion}, why)
		}
	}
	r.nobody = true
}

// compare judges a listed object.
func (p *comparedSink) compare(object *frame.Object, key change.Key) error {
	r := p.of
	of := checkpoint.Object{Resource: r.way.Resource, Key: key}
	last, err := p.newest(of)
	if err != nil {
		return err
	}
	at := checkpoint.Point{History: checkpoint.HistoryOf(r.epoch), Version: object.ResourceVersion}
	switch listener.Judge(object.UID, at, p.Passed(r.way.Resource, key.Namespace), last) {
	case listener.Left:
		if at.After(p.until) {
			p.until = at
		}
	case listener.Unchanged:
		if _, sent := r.synced[key.String()]; p.comparison.Full && !sent && (key.String() > r.done || r.origin.unsorted.Load()) {
			return p.emit(change.Sync, object, last)
		}
	case listener.Another:
		if err := p.emitGone(of, last, at.Below()); err != nil {
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
	if p.held != nil && p.held.Key == of.Key {
		p.release(false)
	}
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
	base, err := r.shape(rec)
	if err != nil {
		return err
	}
	if last.At.Version != base {
		rec.Before = nil
	}
	r.Observer.tellUnreadable(rec, object.Err)
	item := checkpoint.Item{
		Kind: checkpoint.Told, Resource: r.way.Resource, Scope: r.way.Scope,
		At: checkpoint.Point{History: checkpoint.HistoryOf(rec.Epoch), Version: rec.ResourceVersion}, Key: rec.Key, UID: rec.UID,
	}
	if op == change.Sync {
		item.Kind, item.Comparison = checkpoint.Sync, p.comparison
		p.counts.Synced++
	} else {
		p.counts.Replaced++
		if !rec.Filtered {
			p.corrected(change.Correction{Op: change.Replaced, Key: rec.Key, UID: rec.UID, Version: rec.ResourceVersion, Had: last.UID, HadVersion: last.At.Version})
		}
	}
	r.Observer.Received(rec)
	p.hold(rec, item)
	if r.Kept != nil {
		r.note(rec, base)
	}
	return nil
}

// emitGone tells the sink that its object is gone, as of the point.
func (p *comparedSink) emitGone(of checkpoint.Object, last checkpoint.Row, asOf checkpoint.Point) error {
	r := p.of
	rec, err := r.endOf(p.Seat, missed{of, last, asOf, p.snapshot})
	if err != nil {
		return err
	}
	p.counts.Deleted++
	if !rec.Filtered {
		p.corrected(change.Correction{Op: change.Deleted, Key: of.Key, Had: last.UID, HadVersion: last.At.Version})
	}
	r.Observer.Received(rec)
	p.hold(rec, listener.Deleted(of, r.way.Scope, last, asOf))
	return nil
}

// corrected tells of a difference that no watch told of: every one that a full snapshot finds. The other sinks are
// compared as well.
func (p *comparedSink) corrected(c change.Correction) {
	if c.Reason = p.comparison.Reason; !c.Reason.Full() {
		return
	}
	p.of.Observer.Corrected(*p.of.stream, c)
	for _, seat := range p.of.seats {
		if !slices.ContainsFunc(p.of.parts, func(other *comparedSink) bool { return other.Seat == seat }) {
			seat.Ask(&p.of.way, change.Drift)
		}
	}
}

// hold lets the record go that was held, and holds the next one until it is known whether it is the last.
func (p *comparedSink) hold(rec *change.Record, item checkpoint.Item) {
	if rec.Filtered {
		p.Tell(rec, item)
		return
	}
	p.release(false)
	p.held, p.item = rec, item
}

// release lets the record go that is held.
func (p *comparedSink) release(last bool) {
	if p.held != nil {
		p.held.Last = last
		p.Tell(p.held, p.item)
		p.held = nil
	}
}

// turnPage concludes from the end of a page what was not listed: nothing is concluded from the order of a list before a
// continue token proves it, or its end.
func (r *reading) turnPage(ctx context.Context, meta *frame.ListMeta) error {
	r.at.token = meta.Continue
	list := checkpoint.Point{History: checkpoint.HistoryOf(r.epoch), Version: meta.ResourceVersion}
	if r.oldest == "" || change.CompareVersions(list.Version, r.oldest) < 0 {
		r.oldest = list.Version
	}
	r.begun = false
	unsorted := r.origin.unsorted.Load()
	namespace := ""
	if r.scope != checkpoint.Others {
		namespace = string(r.scope)
	}
	of := missing{oldest: list, newest: list}
	switch {
	case meta.Continue == "" && unsorted:
		of.oldest.Version = r.oldest // any page could have had it
		return r.unlisted(ctx, "", "", of)
	case meta.Continue == "":
		return r.unlisted(ctx, r.start, "", of)
	case unsorted:
		return nil
	case !isRange(meta.Continue, namespace, []byte(r.last)):
		return errUnsorted
	}
	if err := r.unlisted(ctx, r.start, r.last, of); err != nil {
		return err
	}
	r.start, r.done = r.last, max(r.done, r.last)
	maps.DeleteFunc(r.synced, func(key string, _ struct{}) bool { return key <= r.done })
	return nil
}

// unlisted makes suspects of what the sinks have between two keys, and the page has not.
func (r *reading) unlisted(ctx context.Context, behind, upTo string, of missing) error {
	if r.nobody || r.chosen != nil && r.chosen.limits.Selector != "" {
		return nil
	}
	for _, p := range slices.Clone(r.parts) {
		for key, err := range p.Has(r.way.Resource, string(r.scope), behind, upTo) {
			if err != nil {
				return fmt.Errorf("read what sink %s has of %s: %w", p.Name, r.stream, err)
			}
			if _, listed := r.keys[key.String()]; listed || r.chosen != nil && r.chosen.limits.Name != "" && key.Name != r.chosen.limits.Name {
				continue
			}
			for len(p.suspects) >= maxPassed {
				err := r.settle(ctx, p)
				if err == nil && len(p.suspects) >= maxPassed {
					err = r.await(ctx)
				}
				if err != nil {
					return err
				}
			}
			of.key = key
			p.suspects = append(p.suspects, of)
		}
		if err := r.settle(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// settle tells of the suspects that are certain to be gone: the watch has passed the version of the list, and has not
// told of them since. Each turn takes a few, so that no live change waits for all.
func (r *reading) settle(ctx context.Context, p *comparedSink) error {
	var open []missing
	for len(p.suspects) > 0 {
		if err := r.awaitSinks(ctx); err != nil {
			return err
		}
		give, err := r.turns.takeIn(ctx)
		if err != nil {
			return err
		}
		if !p.goesOn() {
			p.suspects = nil
			give()
			return nil
		}
		n := min(len(p.suspects), turnObjects)
		for _, s := range p.suspects[:n] {
			isOpen, err := p.settleOne(s)
			if err != nil {
				give()
				return err
			}
			if isOpen {
				open = append(open, s)
			}
		}
		p.suspects = p.suspects[n:]
		give()
	}
	p.suspects = open
	return nil
}

// settleOne tells of one, unless the watch has not passed the list. The caller has the turn.
func (p *comparedSink) settleOne(s missing) (isOpen bool, err error) {
	r := p.of
	if !r.silent && s.newest.After(p.Passed(r.way.Resource, s.key.Namespace)) {
		return true, nil
	}
	of := checkpoint.Object{Resource: r.way.Resource, Key: s.key}
	last, err := p.newest(of)
	if err == nil && listener.Settle(s.oldest, s.newest, last) == listener.Ended {
		err = p.emitGone(of, last, s.newest)
	}
	return false, err
}

// finish returns when the watch has brought all that the list leaves to it, and tells of the end.
func (r *reading) finish(ctx context.Context) error {
	for {
		for _, p := range slices.Clone(r.parts) {
			if err := r.settle(ctx, p); err != nil {
				return err
			}
		}
		give, err := r.turns.takeIn(ctx)
		if err != nil {
			return err
		}
		r.pageOf = r.turns.open // what is told at the end says nothing of the list
		err = r.check()
		if err == nil {
			r.parts = slices.DeleteFunc(r.parts, (*comparedSink).tryEnd)
		}
		left := len(r.parts)
		give()
		if err != nil || left == 0 {
			return err
		}
		if err := r.await(ctx); err != nil {
			return err
		}
	}
}

// tryEnd tells the sink of the end, where nothing is open. The caller has the turn.
func (p *comparedSink) tryEnd() (over bool) {
	r := p.of
	if len(p.suspects) > 0 || p.until.Version != "" && !r.silent && !p.reached() {
		return false
	}
	p.release(true)
	snapshot := *p.snapshot
	snapshot.Counts = p.counts
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
	r.Observer.Reconciled(*r.stream, &snapshot)
	return true
}

// reached says whether the watch has brought what the list has left to it.
func (p *comparedSink) reached() bool {
	at := p.Known(&p.of.way).From
	return !p.until.After(at) || change.CompareVersions(p.of.brought, p.until.Version) >= 0
}

// await returns when the watch may have moved. One that has been silent for long has nothing to tell any more of what
// was before the list: the server that listed could read its etcd.
func (r *reading) await(ctx context.Context) error {
	r.turns.take()
	open, brought := r.turns.open, r.brought
	r.turns.give()
	silence := time.NewTimer(r.silence.least)
	defer silence.Stop()
	select {
	case <-r.turns.moved:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-silence.C:
	}
	give, err := r.turns.takeIn(ctx)
	if err != nil {
		return err
	}
	defer give()
	r.silent = open != 0 && open == r.turns.open && brought == r.brought
	return nil
}

// leave ends what is not over of the sink's snapshot. What is held was compared, and would be found again. The caller
// has the turn.
func (p *comparedSink) leave() {
	r := p.of
	if slices.Contains(r.seats, p.Seat) { // elsewhere another informer finds it
		p.release(false)
	}
	if r.Observer.Abandoned != nil && p.comparison.Full {
		r.Observer.Abandoned(*r.stream, p.snapshot)
	}
}

// close ends the reading.
func (r *reading) close() {
	r.turns.take()
	defer r.turns.give()
	for _, p := range r.parts {
		p.leave()
	}
	r.comparer.reading = nil
	r.comparer.current = nil
}
