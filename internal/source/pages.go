package source

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// begin announces the snapshot. What its sinks have missed and what their logs have lost must be told of before any
// other change, so where there is a gap the line is drained first.
func (r *reading) begin(ctx context.Context) (step, error) {
	give, err := r.turns.takeIn(ctx)
	if err != nil {
		return nil, err
	}
	defer give()
	gap := r.due[0].Reason.Gap()
	if gap {
		if err := r.drain(ctx); err != nil {
			return nil, err
		}
	}
	version := r.cursor.position.ResourceVersion
	r.difference = r.newDifference(r.due, version, nil)
	r.difference.gone = r.suspect
	r.place = placeAt(version, firstPage)
	r.recent.begin()
	r.beside = r
	if gap {
		r.lookForSinkOnly()
	}
	if err := r.difference.begin(ctx); err != nil {
		return nil, err
	}
	return r.prepare, r.release(ctx) // of what is undeleted nothing is held back: what the watch tells comes after it
}

// prepare returns when the inventory has all that was told before the begin. Before an initial snapshot that is so: a
// sink that was never reached holds up nobody's.
func (r *reading) prepare(ctx context.Context) (step, error) {
	if r.snapshot.Reason != change.Initial {
		if err := r.setMark(ctx); err != nil {
			return nil, err
		}
		if err := r.mark.wait(); err != nil {
			return nil, err
		}
	}
	limited := r.snapshot.Limits != (change.Limits{}) // which compares a part of the objects
	if r.snapshot.Reason.Full() && r.snapshot.Reason.Gap() || limited {
		return r.read, nil
	}
	give, err := r.turns.takeIn(ctx)
	if err != nil {
		return nil, err
	}
	defer give()
	r.lookForSinkOnly()
	return r.read, nil
}

// lookForSinkOnly takes the sink-only objects but for those that the watch brings again, or has told of since the mark.
func (r *reading) lookForSinkOnly() {
	r.sinkOnly = newSinkOnly(r.line.SinkOnly(r.stream))
	r.sinkOnly.dropComing(r.place.list, r.recent.knows)
}

// read compares one page.
func (r *reading) read(ctx context.Context) (next step, err error) {
	if err := r.checkCluster(ctx); err != nil {
		return nil, err
	}
	if err := r.setMark(ctx); err != nil {
		return nil, err
	}
	// Of which version a page was that failed is not known: what it did not list may have come since.
	r.passed, r.suspects = slices.DeleteFunc(r.passed, unlisted.isVague), slices.DeleteFunc(r.suspects, unlisted.isVague)
	began, n := time.Now(), 0
	r.inventory.restart(r.place.done)
	r.place.read()
	listed := r.origin.collection.within(r.snapshot.Limits)
	meta, err := listed.list(ctx, r.place.at, func(object frame.Object) error { n++; return r.take(ctx, &object) })
	switch err = r.origin.versions.ended(err); {
	case isGone(err) || errors.Is(err, errTooRecent):
		return r.read, r.listAgain(ctx, err)
	case err != nil:
		return nil, err
	}
	if r.upTo = meta.ResourceVersion; r.oldest == "" || change.CompareVersions(r.upTo, r.oldest) < 0 {
		r.oldest = r.upTo
	}
	switch err := r.compare(ctx, func() error { return r.turnPage(ctx, meta.Continue) }); {
	case errors.Is(err, errTooRecent):
		return r.read, r.listAgain(ctx, err)
	case err != nil:
		return nil, err
	}
	r.Observer.tellListed(r.stream, n, &meta)
	if r.place.turn(meta.Continue, time.Since(began)) {
		return r.read, nil
	}
	return r.end, nil
}

// errOtherCluster says that another cluster has answered than the one whose history is read.
var errOtherCluster = errors.New("another cluster answers at the server's address")

// checkCluster asks who would answer. The watch may go on over an old connection.
func (r *reading) checkCluster(ctx context.Context) error {
	cluster := change.ClusterOf(r.epoch)
	if cluster == "" {
		return nil
	}
	if uid, err := r.origin.cluster(ctx, time.Time{}); err != nil || uid == cluster {
		return err
	}
	r.origin.trust.doubt()
	r.schedule.endWatch()
	return errOtherCluster
}

// listAgain makes the list go on at a newer version, where the server has forgotten its own: after the page before, if
// the server says how, or from the beginning. The rule holds for pages of any version.
func (r *reading) listAgain(ctx context.Context, why error) error {
	_, floods, err := r.watch.remembered(ctx)
	if err != nil {
		return err
	}
	version, err := r.origin.askVersion(ctx, r.origin.collection)
	if err != nil {
		return err
	}
	r.watch.floods = floods
	token := ""
	var status apierrors.APIStatus
	if errors.As(why, &status) {
		token = status.Status().ListMeta.Continue
	}
	r.place.renew(version, token)
	r.upTo = r.place.at.exactly
	give, err := r.turns.takeIn(ctx)
	if err != nil {
		return err
	}
	defer give()
	r.recent.forgetDeletes() // which the newer list does not have
	return nil
}

// take takes an object of the page, and compares those that wait when there are enough.
func (r *reading) take(ctx context.Context, object *frame.Object) error {
	if !r.batch.add(object) {
		return nil
	}
	return r.compare(ctx, func() error { return nil })
}

// compare compares the objects that wait, in one turn, and then does what follows.
func (r *reading) compare(ctx context.Context, then func() error) error {
	if err := r.Rate.wait(ctx, len(r.batch.objects)); err != nil {
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
	if err := r.watch.check(); err != nil {
		return err
	}
	for i := range r.batch.objects {
		if err := r.compareOne(ctx, &r.batch.objects[i]); err != nil {
			return err
		}
	}
	r.batch.reset()
	return then()
}

// turnPage concludes from the end of a page what was not listed.
func (r *reading) turnPage(ctx context.Context, token string) error {
	for _, all := range [][]unlisted{r.passed, r.suspects} {
		for i := range all {
			all[i].list = cmp.Or(all[i].list, r.upTo)
		}
	}
	if token != "" {
		return r.proveOrder(ctx, token)
	}
	if err := r.emitPassed(ctx); err != nil {
		return err
	}
	oldest := ""
	if r.inventory.listed != nil { // any page could have had it
		oldest = r.oldest
	}
	for entry, err := range r.inventory.rest() {
		if err == nil {
			err = r.suspect(ctx, unlisted{entry: entry, list: r.upTo, oldest: oldest})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// end returns when the watch has passed all that the snapshot leaves to it, and ends the snapshot.
func (r *reading) end(ctx context.Context) (step, error) {
	for {
		over, at, err := r.tryEnd(ctx)
		if over || err != nil {
			return nil, err
		}
		if err := r.watch.await(ctx, at); err != nil {
			return nil, err
		}
	}
}

func (r *reading) tryEnd(ctx context.Context) (over bool, at stand, err error) {
	give, err := r.turns.takeIn(ctx)
	if err != nil {
		return false, at, err
	}
	defer give()
	at = r.watch.stand()
	if err := r.settleAll(ctx); err != nil {
		return false, at, err
	}
	passed := change.CompareVersions(at.position.ResourceVersion, r.until) >= 0
	if len(r.suspects) > 0 || !passed || len(r.sinkOnly) > 0 && !r.watch.reached(r.upTo) {
		return false, at, nil
	}
	return true, at, r.finish(ctx)
}

// emitEnd tells of the end. The position is the watch's alone; a comparison takes its mark off.
func (r *reading) emitEnd(ctx context.Context) error {
	if !r.isComparison() {
		return r.emitFrames(ctx, change.SnapshotEnd, change.Position{})
	}
	position := r.cursor.position
	position.Selector = r.Selection.String()
	if err := r.emitFrames(ctx, change.SnapshotEnd, position); err != nil {
		return err
	}
	r.cursor.position.Selector = position.Selector // nothing else: whoever opens the next watch reads the rest without a turn
	return nil
}

// finish tells of what is left, and of the end.
func (r *reading) finish(ctx context.Context) error {
	if err := r.emitAllSinkOnly(ctx); err != nil {
		return err
	}
	if err := r.releaseLast(ctx); err != nil {
		return err
	}
	if err := r.emitEnd(ctx); err != nil {
		return err
	}
	r.alone()
	r.tellEnd()
	return nil
}

// setMark makes a mark beside the watch that is open, if the one before is saved: a sink that takes nothing holds up no
// snapshot of the others before there is too much to remember.
func (r *reading) setMark(ctx context.Context) error {
	if err := r.leaveRoom(ctx); err != nil {
		return err
	}
	if err := r.turns.awaitWatch(ctx); err != nil {
		return err
	}
	defer r.turns.give()
	r.batch.reset()
	r.watch.number = r.turns.open
	if err := r.settleAll(ctx); err != nil {
		return err
	}
	if saved, err := r.mark.isSaved(); !saved || err != nil {
		return err
	}
	r.recent.next(r.hasPassed)
	draining, stop := context.WithCancel(ctx)
	r.mark = savePoint{stop: stop, saved: make(chan error, 1)}
	go func(saved chan<- error) { saved <- r.drain(draining) }(r.mark.saved)
	return nil
}

// leaveRoom returns when less is remembered than may be, or when the mark is saved.
func (r *reading) leaveRoom(ctx context.Context) error {
	if full, _, err := r.watch.remembered(ctx); !full || err != nil {
		return err
	}
	return r.mark.wait()
}
