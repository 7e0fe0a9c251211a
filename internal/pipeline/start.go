package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/delivery"
	"github.com/kubecdc/kubecdc/internal/line"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// openGrace is how long the start waits for sinks: one that opens within it is there before the first record is read,
// as the API server's history may be short. One that does not is opened while the others deliver.
const openGrace = 5 * time.Second

// opener opens the sinks.
type opener struct {
	owing
	opening     context.Context // of the sinks that are not open yet
	stopOpening context.CancelFunc
}

// open begins to open all sinks at their marks, waits a little for them, and finds out what each must be given. A
// sink that cannot be opened for good is stopped.
func (o *opener) open(ctx context.Context) error {
	if err := o.prepare(); err != nil {
		return err
	}
	for _, l := range o.listeners {
		o.beginOpen(ctx, l)
	}
	grace := time.NewTimer(cmp.Or(o.OpenGrace, openGrace))
	defer grace.Stop()
	for _, l := range o.listeners {
		select {
		case opened := <-l.opening:
			if err := o.joinInTime(l, opened); err != nil {
				return err
			}
		case <-grace.C:
			grace.Reset(0)
		}
	}
	for _, l := range o.listeners {
		if l.IsJoined() {
			o.resumeCorrections(l)
		}
	}
	return o.requestOwed(func(checkpoint.PendingSnapshot) bool { return true }) // from earlier lives, too
}

// beginOpen opens the sink in a goroutine of its own.
func (o *opener) beginOpen(ctx context.Context, l *listener) {
	l.opening = make(chan openedSink, 1)
	go func() {
		lost, err := o.openSink(ctx, l)
		l.opening <- openedSink{lost, err}
	}()
}

// joinInTime takes a sink that was opened before the sources begin. One that cannot be is tried again later, unless
// it was the last.
func (o *opener) joinInTime(l *listener, opened openedSink) error {
	if !delivery.IsPermanent(opened.err) {
		return o.join(l, opened, o.note)
	}
	l.opening <- opened // for its listener
	return o.stops.Stop(l.Index, opened.err)
}

// resumeCorrections repeats the full snapshots whose corrections the sink has and the saved state does not know. A
// resync is no pending snapshot, so that its next turn would tell of them once more, when the sink's tail is forgotten
// (I3).
func (o *opener) resumeCorrections(l *listener) {
	for _, s := range o.sources() {
		corrected := false
		l.Recovery.With(func(r *line.Recovery) { corrected = r.Log.Corrected(&s.Stream) })
		if corrected {
			s.Request(change.Owed{Sink: l.Name, Reason: change.Resync})
		}
	}
}

// awaitOpen waits until the sink is open, where it was not in time; false is that the run ends first. Meanwhile it is
// stopped where only a person can help.
func (o *opener) awaitOpen(l *listener) (bool, error) {
	if l.IsJoined() {
		return true, nil
	}
	var opened openedSink
	for {
		opened = <-l.opening
		if opened.err == nil || o.opening.Err() != nil || !delivery.IsPermanent(opened.err) && !l.IsAway() {
			break
		}
		if err := o.failedToOpen(l, opened.err); err != nil {
			l.Join()
			return false, delivery.IsEnd(err)
		}
		o.beginOpen(o.opening, l)
	}
	err := l.GoOn(o.opening)
	if l.Join(); opened.err != nil && o.opening.Err() != nil {
		return false, nil // it was told to give up
	}
	if err != nil && !errors.Is(err, delivery.ErrLeft) {
		return false, nil
	}
	o.stops.Resume(l.Index)
	back := l.Misses()
	if err := o.join(l, opened, o.owe); err != nil {
		return false, err
	}
	o.resumeCorrections(l)
	err = o.requestOwed(func(d checkpoint.PendingSnapshot) bool {
		return d.Sink == l.Name && (back || d.Reason == change.Lost && !opened.lost) // join has asked for what is lost now
	})
	return err == nil || errors.Is(err, delivery.ErrLeft), err
}

// failedToOpen returns when the sink may be opened again. One that is absent holds up nobody, and ends nothing either.
func (o *opener) failedToOpen(l *listener, err error) error {
	if delivery.IsPermanent(err) {
		return l.Halt(o.opening, err)
	}
	o.Observer.Failed(l.Name, err)
	return l.Wait(o.opening)
}

// closeUnopened waits for the sinks that are still being opened, when the run ends before it began.
func (o *opener) closeUnopened() {
	for _, l := range o.listeners {
		if l.opening != nil && !l.IsJoined() {
			<-l.opening
			l.Join()
		}
	}
}

// openSink opens one sink at its saved mark, and says whether its log lost acknowledged records.
func (o *opener) openSink(ctx context.Context, l *listener) (wasLost bool, err error) {
	mark, _, err := o.Store.Mark(l.Name)
	if err != nil {
		return false, fmt.Errorf("read the mark of sink %s: %w", l.Name, err)
	}
	err = l.OpenFirst(ctx, mark)
	var lost *sink.LostError
	switch {
	case errors.As(err, &lost):
		o.Observer.Failed(l.Name, err)
	case err != nil:
		return false, fmt.Errorf("open sink %s: %w", l.Name, err)
	}
	owed, err := o.owesLost(l.Name)
	if err == nil && (owed || lost != nil) {
		err = l.Recall(ctx)
	}
	return lost != nil, err
}

// join saves where a sink stands that is open now, before its first record, and what it is owed where its log lost
// records.
func (o *opener) join(l *listener, opened openedSink, save func([]checkpoint.PendingSnapshot, map[string]sink.Mark) error) error {
	l.Join()
	if opened.err != nil {
		return opened.err
	}
	if err := l.NoteAfterMark(); err != nil {
		return err
	}
	l.Rewind()
	var pendingSnapshots []checkpoint.PendingSnapshot
	if opened.lost {
		known, err := o.Store.Streams()
		if err != nil {
			return err
		}
		if pendingSnapshots, err = o.lostSnapshots(l); err != nil {
			return err
		}
		pendingSnapshots = slices.DeleteFunc(pendingSnapshots, func(d checkpoint.PendingSnapshot) bool { return !slices.Contains(known, d.Stream) })
	}
	o.saving.Lock()
	defer o.saving.Unlock()
	if err := save(pendingSnapshots, map[string]sink.Mark{l.Name: l.Mark()}); err != nil {
		return fmt.Errorf("save the mark of sink %s: %w", l.Name, err)
	}
	l.NoteSaved(l.Mark())
	l.Rejoin()
	o.takesBeside(l)
	return nil
}

// note saves pending snapshots that are asked for with all others, and marks.
func (o *owing) note(pendingSnapshots []checkpoint.PendingSnapshot, marks map[string]sink.Mark) error {
	return o.Store.Commit(checkpoint.Batch{PendingSnapshots: pendingSnapshots, Marks: marks})
}

// prepare saves, before the first record and in one batch, which streams each sink takes, and what it is owed: a
// share of a stream that the state knows, and that the sink did not have, begins with a full snapshot. Sinks that are
// no longer configured are absent, and for the others it takes up what is spooled.
func (o *opener) prepare() error {
	known, err := o.Store.Streams()
	if err != nil {
		return err
	}
	subscriptions, err := o.Store.Subscriptions()
	if err != nil {
		return err
	}
	batch := checkpoint.Batch{Based: map[checkpoint.Subscription]change.Position{}, Resources: o.streams()}
	var names []string
	for _, l := range o.listeners {
		names = append(names, l.Name)
		for _, s := range o.Sources {
			subscriptionOf(l, s, subscriptions, &batch)
		}
		if err := o.base(l, &batch); err != nil {
			return err
		}
		if err := l.LoadSpool(); err != nil {
			return fmt.Errorf("read the spool of sink %s: %w", l.Name, err)
		}
	}
	batch.PendingSnapshots = slices.DeleteFunc(batch.PendingSnapshots, func(d checkpoint.PendingSnapshot) bool {
		_, found := slices.BinarySearch(known, d.Stream)
		return !found
	})
	for _, l := range o.listeners {
		leavesUntaken(l, o.Sources, subscriptions, &batch)
	}
	kept, err := o.depart(&batch, subscriptions)
	if err != nil {
		return err
	}
	if err := o.Store.Commit(batch); err != nil {
		return fmt.Errorf("save the subscriptions of the sinks: %w", err)
	}
	o.tellAbsent()
	if err := o.leave(known); err != nil {
		return err
	}
	return o.Store.Retain(append(names, kept...))
}

// base finds the positions that the sink's log is compared with. Spooling moves positions on although the log was not
// read yet, perhaps for several lives of the process: then they are those from before.
func (o *opener) base(l *listener, batch *checkpoint.Batch) error {
	replayBases, err := o.Store.ReplayBases(l.Name)
	if err != nil || len(replayBases) == 0 && l.Spool == 0 {
		return err
	}
	l.Seat.Base()
	present := len(replayBases) == 0
	for _, s := range o.Sources {
		stream := s.Stream.String()
		if _, found := replayBases[stream]; found {
			continue
		}
		position, _, err := o.Store.Position(stream)
		if err != nil {
			return err
		}
		replayBases[stream] = position
		batch.Based[checkpoint.Subscription{Sink: l.Name, Stream: stream}] = position
	}
	return l.CompareWith(replayBases, present)
}

// subscriptionOf compares what the listener's sink takes of the stream with the subscriptions that it has.
func subscriptionOf(l *listener, s Source, subscriptions map[checkpoint.Subscription]bool, batch *checkpoint.Batch) {
	subscription := checkpoint.Subscription{Sink: l.Name, Stream: s.Stream.String()}
	if l.Takes(&s.Stream) && !subscriptions[subscription] {
		batch.Taken = append(batch.Taken, subscription)
		batch.PendingSnapshots = append(batch.PendingSnapshots, delivery.PendingSnapshot(l.Name, subscription.Stream, change.NewSink))
	}
}

// leavesUntaken notes that the sink misses the streams that it had and does not take any more: should it take them
// again one day, it is to be told what is gone.
func leavesUntaken(l *listener, sources []Source, subscriptions map[checkpoint.Subscription]bool, batch *checkpoint.Batch) {
	for _, s := range sources {
		subscription := checkpoint.Subscription{Sink: l.Name, Stream: s.Stream.String()}
		if subscriptions[subscription] && !l.Takes(&s.Stream) {
			delivery.MakeAbsent(batch, subscription)
		}
	}
}

// leave marks the positions of the streams that are not configured any more. Were they to continue there one day, they
// would tell again what another stream of the same objects has told meanwhile.
func (o *opener) leave(known []string) error {
	configured := map[string]bool{}
	for _, s := range o.Sources {
		configured[s.Stream.String()] = true
	}
	for _, name := range known {
		if configured[name] {
			continue
		}
		position, found, err := o.Store.Position(name)
		if err == nil && found && position.Configured() {
			err = o.Store.SetPosition(name, position.Leave())
		}
		if err != nil {
			return fmt.Errorf("note that stream %s is not configured: %w", name, err)
		}
	}
	return nil
}
