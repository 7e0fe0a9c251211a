package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/listener"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// readDue reads lists whenever there may be something to compare, until ctx ends.
func (i *Informer) readDue(ctx context.Context) {
	for {
		select {
		case <-i.comparer.due:
			i.readAll(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// readAll reads lists until there is nothing to compare.
func (i *Informer) readAll(ctx context.Context) {
	for ctx.Err() == nil {
		r, err := i.nextReading(ctx)
		if r == nil || err != nil {
			return
		}
		leave, err := i.Gate.enter(ctx)
		if err != nil {
			return
		}
		r.try(ctx)
		leave()
		r.close()
	}
}

// nextReading begins the next list that has to be read, nil if there is none.
func (i *Informer) nextReading(ctx context.Context) (*reading, error) {
	give, err := i.turns.takeIn(ctx)
	if err != nil {
		return nil, err
	}
	defer give()
	if i.from == "" || ctx.Err() != nil {
		return nil, nil // the first watch begins the comparisons
	}
	i.shared.askedOf(i.seats, i.ask)
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
	return r, nil
}

// add adds the sink to those that are compared with the list.
func (r *reading) add(seat *listener.Seat, c checkpoint.Comparison) *comparedSink {
	p := &comparedSink{holding: holding{Seat: seat}, of: r, comparison: c, snapshot: r.snapshot(seat, c), ahead: leastAhead}
	version := r.at.exactly
	r.parts, r.comparer.holdings = append(r.parts, p), append(r.comparer.holdings, &p.holding)
	if version == "" || change.CompareVersions(p.snapshot.ResourceVersion, version) > 0 {
		version = p.snapshot.ResourceVersion
	}
	r.begin(version)
	return p
}

// chosenReading begins the next snapshot of chosen objects, nil if there is none. It says nothing about other objects.
func (i *Informer) chosenReading() *reading {
	c := &i.comparer
	for len(c.chosen) > 0 {
		one := c.chosen[0]
		c.chosen = c.chosen[1:]
		at := slices.IndexFunc(i.seats, func(seat *listener.Seat) bool { return seat.Intake == one.sink })
		if at < 0 {
			i.askAgain(one)
			continue
		}
		seat := i.seats[at]
		r := &reading{
			Informer: i, epoch: i.epoch, synced: map[string]struct{}{}, chosen: &one,
			scope: cmp.Or(checkpoint.Scope(one.limits.Namespace), i.way.Scope),
		}
		id := seat.PartID(seat.Known(&i.way).Highest.Version)
		p := r.add(seat, checkpoint.Comparison{ID: id, Full: true, Reason: one.reason, Namespace: string(r.scope)})
		p.snapshot.Limits = one.limits
		i.Observer.Comparing(*i.stream, p.snapshot)
		i.tellBeside(seat, i.framing(change.SnapshotBegin, p.snapshot, i.way.Scope))
		c.current, c.is = &one, true
		return r
	}
	return nil
}

// try reads the list to its end, in spite of failures, unless ctx ends or no sink is compared any more.
func (r *reading) try(ctx context.Context) {
	failed, pause := false, reflectorBackoff().DelayFunc() // as between watches
	for {
		err := r.read(ctx)
		_, unordered := errors.AsType[*UnorderedError](err)
		switch {
		case err == nil && failed:
			r.Observer.Watching(*r.stream, r.at.exactly) // it works again
			return
		case err == nil, errors.Is(err, errNobody), ctx.Err() != nil:
			return
		case unordered:
			r.turns.take()
			err = r.refuse(ctx, err)
			r.turns.give()
			r.Observer.Failed(*r.stream, err)
			r.end()
			return
		case errors.Is(err, errUnsorted):
			r.origin.unsorted.Store(true) // for good: this server does not sort
			r.begin(r.at.exactly)
		case !errors.Is(err, errWatchEnded):
			failed = true
			r.Observer.Failed(*r.stream, fmt.Errorf("read a snapshot of %s: %w", r.stream, err))
		}
		select {
		case <-time.After(pause()):
		case <-ctx.Done():
			return
		}
	}
}

// begin begins the list anew, at exactly the version.
func (r *reading) begin(version string) {
	limit := pageSize
	if slices.ContainsFunc(r.parts, func(p *comparedSink) bool { return p.comparison.Full }) {
		limit = firstPage
	}
	r.at, r.oldest, r.start, r.last, r.keys, r.begun = page{limit: limit, exactly: version}, "", "", "", nil, false
}

// read reads pages to the end of the list, and then waits for what the list leaves to the watch.
func (r *reading) read(ctx context.Context) error {
	for {
		if err := r.beside(ctx); err != nil { // errNobody if the stream is in another history by now
			return err
		}
		if err := r.checkCluster(ctx); err != nil {
			return err
		}
		began := time.Now()
		listed := r.origin.collection.within(r.limits())
		n := 0
		meta, err := listed.list(ctx, r.at, func(object frame.Object) error { n++; return r.take(ctx, &object) })
		if err = r.origin.listed(err); IsGone(err) {
			if err := r.listAgain(ctx, err); err != nil {
				return err
			}
			continue
		}
		if err == nil {
			err = r.compareWaiting(ctx)
		}
		if err == nil {
			err = r.turnPage(ctx, &meta)
		}
		if err != nil {
			return err // the page is read again
		}
		r.at.token, r.begun = meta.Continue, false
		r.Observer.Listed(*r.stream, n, meta.Remaining)
		if r.at.token == "" {
			if err = r.finish(ctx); err != nil {
				r.begin(r.at.exactly)
			}
			return err
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

// beside begins a page beside the watch that is open, for which it waits.
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
	for _, p := range r.parts { // the suspects of this page are found again
		p.suspects = slices.DeleteFunc(p.suspects, func(s missing) bool { return s.key.String() > r.start })
	}
	if r.begun { // it failed, perhaps since it took longer than the watch beside it
		r.at.limit = max(r.at.limit/2, firstPage)
	}
	r.begun = true
	return r.check()
}

// checkCluster asks which cluster answers now: the watch may still be open at another one.
func (r *reading) checkCluster(ctx context.Context) error {
	cluster := change.ClusterOf(r.epoch)
	if cluster == "" || r.ClusterUID == "" {
		return nil
	}
	if uid, err := r.origin.cluster(ctx, time.Time{}); err != nil || uid == cluster {
		return err
	}
	r.origin.doubt()
	return errOtherCluster
}

// listAgain makes the list go on at a newer version, since the server has forgotten its own: after the page before, if
// the server returns a token for that, or from the beginning. The rules hold for pages of any version.
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

// turnPage concludes what was not listed when a page is read. It does not rely on the order of the list unless a
// continue token, or the end of the list, proves it.
func (r *reading) turnPage(ctx context.Context, meta *frame.ListMeta) error {
	list := checkpoint.Point{History: checkpoint.HistoryOf(r.epoch), Version: meta.ResourceVersion}
	if r.oldest == "" || change.CompareVersions(list.Version, r.oldest) < 0 {
		r.oldest = list.Version
	}
	if change.CompareVersions(list.Version, r.newest) > 0 {
		r.newest = list.Version
	}
	unsorted := r.origin.unsorted.Load()
	namespace := ""
	if r.scope != checkpoint.Others {
		namespace = string(r.scope)
	}
	of := missing{oldest: list, newest: list}
	switch {
	case meta.Continue == "" && unsorted:
		of.oldest.Version = r.oldest // the object could have been on any page
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

// unlisted makes suspects of the objects between two keys that the sinks have, and the page has not.
func (r *reading) unlisted(ctx context.Context, behind, upTo string, of missing) error {
	if r.nobody || r.chosen != nil && r.chosen.limits.Selector != "" {
		return nil
	}
	for _, p := range slices.Clone(r.parts) {
		for key, err := range p.Has(r.way.Resource, string(r.scope), behind, upTo) {
			if err != nil {
				return fmt.Errorf("read what sink %s has of %s: %w", p.Name, r.stream, err)
			}
			_, listed := r.keys[key.String()]
			if other := r.limits().Name; listed || other != "" && key.Name != other {
				continue
			}
			for len(p.suspects) >= maxPassed {
				err := r.tellMissing(ctx, p)
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
		if err := r.tellMissing(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// tellMissing tells the sink of the suspects that are gone for certain: the watch has passed the version of the list,
// and has brought nothing of them since. Each turn takes a few, so that no live change waits for all.
func (r *reading) tellMissing(ctx context.Context, p *comparedSink) error {
	var open []missing
	defer func() { p.suspects = append(open, p.suspects...) }()
	for len(p.suspects) > 0 {
		if err := r.awaitSinks(ctx); err != nil {
			return err
		}
		give, err := r.turns.takeIn(ctx)
		if err != nil {
			return err
		}
		if !p.goesOn() {
			open, p.suspects = nil, nil
			give()
			return nil
		}
		n := min(len(p.suspects), turnObjects)
		for _, s := range p.suspects[:n] {
			isOpen, err := p.tellOneMissing(s)
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
	return nil
}

// finish waits until the watch has brought all that the list leaves to it, and tells the sinks of the end.
func (r *reading) finish(ctx context.Context) error {
	for {
		for _, p := range slices.Clone(r.parts) {
			if err := r.tellMissing(ctx, p); err != nil {
				return err
			}
		}
		give, err := r.turns.takeIn(ctx)
		if err != nil {
			return err
		}
		r.pageOf = r.turns.open // no page is read any more, so another watch does not matter
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

// await returns when the watch may have moved, or has been silent for long: then it has brought everything that was
// before the list, since the server that listed could read etcd.
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

// close ends the reading.
func (r *reading) close() {
	r.turns.take()
	defer r.turns.give()
	for _, p := range r.parts {
		p.leave()
	}
	r.comparer.holdings, r.comparer.current = nil, nil
}
