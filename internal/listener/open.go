package listener

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// openAnew opens the sink at its saved mark, and lets it be offered everything: in a new process, after it was stopped,
// and if its log has lost records. It tries for as long as ctx lives.
func (l *Listener) openAnew(ctx context.Context) error {
	for {
		err := l.openOnce(ctx)
		switch {
		case err == nil:
			l.Stops.Resume(l.index)
			l.signalOpened()
			l.Serve(&l.Intake)
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case IsLate(err):
			return &endError{fmt.Errorf("open sink %s: %w", l.Name, err)}
		case IsPermanent(err):
			l.signalOpened()
			if err := l.stop(ctx, fmt.Errorf("open sink %s: %w", l.Name, err)); err != nil && !errors.Is(err, errAnew) {
				return err
			}
			continue
		}
		l.signalOpened() // the start does not wait for it any longer
		l.Observer.Failed(l.Name, err)
		if err := l.patience.wait(ctx); err != nil {
			return err
		}
	}
}

func (l *Listener) signalOpened() {
	select {
	case <-l.opened:
	default:
		close(l.opened)
	}
}

// openOnce opens the sink, and folds what its log has after the mark into what is saved (rule fold). If the log has
// lost records, the gaps are told when the streams begin.
func (l *Listener) openOnce(ctx context.Context) error {
	if err := l.books.Save(ctx); err != nil { // what was acknowledged before becomes part of its state
		return err
	}
	if err := l.loadSpool(); err != nil {
		return err
	}
	var mark sink.Mark
	_ = l.books.with(&l.Intake, func(state *checkpoint.SinkState) error { mark = sink.Mark(state.Mark); return nil })
	after, err := l.open(ctx, sink.Opening{Mark: mark}, l.beginFold)
	var lost *sink.LostError
	switch {
	case errors.As(err, &lost):
		l.Observer.Failed(l.Name, err)
		if err := l.rereadLog(ctx); err != nil {
			return err
		}
	case err != nil:
		return err
	}
	if isFolded := l.tail.first == nil && after != nil && after.count > 0; mark == "" || lost != nil || isFolded {
		if mark, err = l.Target.Write(ctx, nil); err != nil {
			return fmt.Errorf("read the mark: %w", err)
		}
	}
	if l.tail.other || len(l.toGive()) > 0 {
		if err := l.giveUpDisk(); err != nil {
			return err
		}
	}
	if given := l.toGive(); len(given) > 0 {
		if err := l.give(ctx, given); err != nil {
			return err
		}
		return l.openOnce(ctx) // without the places that are another's now
	}
	l.mark, l.retried = mark, nil
	found := 0
	if after != nil {
		found = after.count
	}
	return l.begin(found)
}

// toGive are the resources that the sink has something of and that belong to another task now, with that task. All that
// the sink's log says of them is part of the state by now, and this exporter writes nothing of them any more.
func (l *Listener) toGive() map[string]int {
	all := map[string]int{}
	if l.Owner == nil {
		return all
	}
	var given [2]map[string]checkpoint.Places // with what is on disk, and without
	_ = l.books.with(&l.Intake, func(state *checkpoint.SinkState) error {
		given = [2]map[string]checkpoint.Places{state.Given().Places, state.Places}
		return nil
	})
	for _, places := range given {
		for resource := range places {
			if task := l.Owner(resource); task != 0 {
				all[resource] = task
			}
		}
	}
	return all
}

// give puts the resources aside. The mark moves to the log's end with that: what is folded now must not be found again.
func (l *Listener) give(ctx context.Context, resources map[string]int) error {
	mark, err := l.Target.Write(ctx, nil)
	if err != nil {
		return fmt.Errorf("read the mark: %w", err)
	}
	for resource, task := range resources {
		gift := checkpoint.Gift{To: task, Mark: string(mark)}
		err := l.books.with(&l.Intake, func(state *checkpoint.SinkState) error { return l.Store.Give(state, resource, gift) })
		if err != nil {
			return fmt.Errorf("put %s aside for task %d: %w", resource, task, err)
		}
	}
	return nil
}

// giveUpDisk removes what an earlier life has left on disk, if the log has gone on without it: the records on disk
// continue what the sink was told then, and not what its log has. The sink goes on from its log.
func (l *Listener) giveUpDisk() error {
	l.tail = tail{}
	l.use(func(b *fifo.Backlog) { b.Resume(fifo.Spool{}, time.Time{}) })
	if err := l.books.with(&l.Intake, l.Store.GiveUpDisk); err != nil {
		return fmt.Errorf("give up what is on disk for sink %s: %w", l.Name, err)
	}
	return nil
}

// begin saves the mark before the sink's first record, and lets the sink be offered everything.
func (l *Listener) begin(found int) error {
	err := l.books.change(&l.Intake, nil, func(state *checkpoint.SinkState) error {
		state.Mark = string(l.mark)
		state.ForgetAsked()
		return nil
	})
	if err != nil {
		return fmt.Errorf("save the mark of sink %s: %w", l.Name, err)
	}
	mark := l.mark
	l.savedMark.Store(&mark)
	l.Observer.Opened(l.Name, found)
	l.books.mu.Lock()
	defer l.books.mu.Unlock()
	if l.Digest {
		if err := l.state.CountObjects(); err != nil {
			return err
		}
	}
	if err := l.findLeft(NewFollower(l.state.Given(), nil)); err != nil {
		return err
	}
	l.serve(l.tellLeft)
	return nil
}

// afterMark takes the ids that a log holds after a mark.
type afterMark struct {
	count  int
	take   func(id string)
	settle func() error
}

// beginFold begins to take what an earlier life of the sink has left in its log.
func (l *Listener) beginFold() (*afterMark, error) {
	fold := l.folding()
	l.tail.other = false
	for _, found := range l.tail.first {
		*found = false
	}
	return l.afterMark(func(id string) { l.tail.take(id, fold.take(id)) }, fold.flush)
}

// beginRetry begins to take what a failed batch has left in the log.
func (l *Listener) beginRetry() (*afterMark, error) {
	l.retried = map[string]bool{}
	return l.afterMark(func(id string) { l.retried[id] = true }, func() error { return nil })
}

func (l *Listener) afterMark(take func(id string), settle func() error) (*afterMark, error) {
	letters, settled, err := l.claimed()
	after := &afterMark{settle: func() error { return errors.Join(settle(), settled()) }}
	after.take = func(id string) {
		after.count++
		letters(id)
		take(id)
	}
	return after, err
}

func (l *Listener) folding() *folding {
	return &folding{books: l.books, sink: &l.Intake, ours: l.isOurs}
}

// isOurs says whether the id is of this cluster. A cluster that had the name before counts as an earlier history of it.
func (l *Listener) isOurs(id *change.ID) (bool, error) {
	if change.SameCluster(id.Cluster, l.ClusterUID) {
		return true, nil
	}
	ours, err := l.Store.Clusters()
	return slices.ContainsFunc(ours, func(uid string) bool { return change.SameCluster(id.Cluster, uid) }), err
}

// open opens the sink, which is ours then: whoever takes over later opens it later. If several exporters could lead,
// this one proves after Open that it still leads, since it may have slept. So either another one's claim came first,
// and nothing is written, or the next leader finds in the log all that this one writes.
func (l *Listener) open(ctx context.Context, at sink.Opening, begin func() (*afterMark, error)) (after *afterMark, err error) {
	var failed error
	again := func() func(string) {
		if after, failed = begin(); failed != nil {
			return func(string) {}
		}
		return after.take
	}
	if again(); failed != nil { // a sink that finds nothing need not call After
		return nil, failed
	}
	at.After = again
	err = l.openTarget(ctx, at)
	if failed != nil {
		return nil, failed
	}
	if err != nil {
		return after, err
	}
	return after, after.settle()
}

func (l *Listener) openTarget(ctx context.Context, at sink.Opening) error {
	err := l.Target.Open(ctx, at)
	var lost *sink.LostError
	if l.Prove == nil || err != nil && !errors.As(err, &lost) {
		return err
	}
	var patience patience
	for {
		unproven := l.Prove(ctx)
		if unproven == nil {
			return err
		}
		if ctx.Err() != nil || IsPermanent(unproven) {
			return unproven
		}
		l.Observer.Failed(l.Name, unproven)
		if unproven := patience.wait(ctx); unproven != nil {
			return unproven
		}
	}
}

// reopen makes one attempt to open the sink again at the last mark, after an error that the sink could not mend.
func (l *Listener) reopen(ctx context.Context) error {
	if err := l.patience.wait(ctx); err != nil {
		return err
	}
	if err := l.Target.Close(ctx); err != nil {
		return err
	}
	after, err := l.open(ctx, sink.Opening{Mark: l.mark, Again: true}, l.beginRetry)
	if err == nil {
		l.Observer.Opened(l.Name, after.count)
	}
	return err
}

// rereadLog replaces what is saved by what the log still holds, if it can be read whole, and has everything compared
// with the cluster. Otherwise everything is sent again.
func (l *Listener) rereadLog(ctx context.Context) error {
	log, whole := l.Target.(sink.Rereader)
	err := l.books.with(&l.Intake, func(state *checkpoint.SinkState) error { return l.Store.MarkLost(state, whole) })
	if err != nil {
		return fmt.Errorf("note that the log of sink %s has lost records: %w", l.Name, err)
	}
	if !whole {
		return nil
	}
	l.use(func(b *fifo.Backlog) { b.Resume(fifo.Spool{}, time.Time{}) })
	l.tail = tail{}
	fold := l.folding()
	err = log.Reread(ctx, func(id string) error {
		fold.take(id)
		return fold.err
	})
	if err = errors.Join(err, fold.flush()); err != nil {
		return fmt.Errorf("read what the log of sink %s still holds: %w", l.Name, err)
	}
	return nil
}

// loadSpool takes over what an earlier life has left on disk.
func (l *Listener) loadSpool() error {
	saved, err := l.Store.Spool(l.Name)
	if err != nil {
		return err
	}
	first := saved
	records, err := l.readDisk(&first)
	if err != nil {
		return fmt.Errorf("read the spool of sink %s: %w", l.Name, err)
	}
	var oldest time.Time
	l.tail = tail{}
	if len(records) > 0 {
		oldest, l.tail.first = records[0].Received, map[string]*bool{}
	}
	for _, rec := range records {
		id, found := rec.ID(l.ClusterUID), new(bool)
		l.tail.first[id.String()] = found
		for _, note := range change.NotesOf(id) {
			l.tail.first[note.String()] = found
		}
	}
	l.use(func(b *fifo.Backlog) { b.Resume(saved, oldest) })
	return nil
}

// readDisk reads a batch from the front of the extent.
func (l *Listener) readDisk(extent *fifo.Spool) ([]*change.Record, error) {
	most := BatchLimit()
	return l.Store.ReadSpool(l.Name, extent, most.Bytes, most.Records)
}

// takeSpooled takes the oldest batch from disk, without the records that the sink's log has.
func (l *Listener) takeSpooled(ctx context.Context) ([]*change.Record, error) {
	before := query(&l.Intake, (*fifo.Backlog).Extent)
	after := before
	records, err := l.readDisk(&after)
	if err != nil {
		return nil, err
	}
	first := l.tail.first
	l.tail = tail{}
	has := l.held(records, func(id string) bool { return first[id] != nil && *first[id] })
	if len(has) > 0 {
		if err := l.readMark(ctx); err != nil {
			return nil, err
		}
	}
	records = slices.DeleteFunc(records, func(rec *change.Record) bool { return has[rec] })
	records = l.today(records)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.backlog.TakeRead(&before, &after, records)
	l.signal()
	if len(records) == 0 {
		l.acked(nil, string(l.mark))
		l.work(true)
	}
	return records, nil
}

// today are the records in today's form. They may be of streams that the sink does not take any more: it gets them
// before the gap of reason left.
func (l *Listener) today(records []*change.Record) []*change.Record {
	streams := l.Streams()
	records = slices.DeleteFunc(records, func(rec *change.Record) bool { return rec.Op == change.Actor && !l.Actors })
	for _, rec := range records {
		if at := slices.IndexFunc(streams, func(s *change.Stream) bool { return isOf(s, rec) }); at >= 0 {
			rec.Stream = streams[at]
		}
		l.shapeAgain(rec)
	}
	return records
}

// isOf says whether the record's object belongs to the stream.
func isOf(s *change.Stream, rec *change.Record) bool {
	inside := s.Namespace == "" || s.Namespace == rec.Key.Namespace
	return rec.Op.OfObject() && inside && s.Resource.String() == rec.Stream.Resource.String()
}

// shapeAgain brings a record from disk into today's form: the rules may be stricter than when it was put there. If that
// fails, the record is withheld, but a delete only loses its last state (I9).
func (l *Listener) shapeAgain(rec *change.Record) {
	if l.Reshape == nil || !rec.Op.OfObject() || rec.Object == nil && rec.Before == nil || l.Reshape(rec) == nil {
		return
	}
	rec.Object, rec.Before, rec.Involved = nil, nil, nil
	if rec.Op != change.Deleted {
		rec.Withheld = WithheldByForm
	}
}

// WithheldByForm is the Withheld of a record that was cut and redacted by other rules than today's.
const WithheldByForm = "redaction"

// held are those of the records that the log holds; isFound says which ids it has. A bucket and a compacted topic hold
// only the newest record of an object: those before it were written, too.
func (l *Listener) held(records []*change.Record, isFound func(id string) bool) map[*change.Record]bool {
	type object struct {
		stream string
		key    change.Key
	}
	newer, held := map[object]bool{}, map[*change.Record]bool{}
	for _, rec := range slices.Backward(records) {
		of := object{rec.Stream.String(), rec.Key}
		if isFound(rec.ID(l.ClusterUID).String()) || newer[of] && rec.Op.OfObject() {
			newer[of], held[rec] = true, true
		}
	}
	return held
}

// readMark moves the mark to the end of the log, all of which is known, however many attempts that takes. What is on
// disk must not be removed at an older mark: the next process would take what the log has after that for another's, and
// give up what is still on disk.
func (l *Listener) readMark(ctx context.Context) error {
	for {
		mark, err := l.Target.Write(ctx, nil)
		if err == nil {
			l.mark = mark
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		if err := l.mend(ctx, err); err != nil {
			return err
		}
		l.retried = nil // it is known
	}
}

// mend opens the sink again after the error, however long that takes: soon if that may help, and seldom if only a
// person can help. A sink that was opened too early ends the run, which begins anew.
func (l *Listener) mend(ctx context.Context, err error) error {
	for isLost := false; ; _, isLost = errors.AsType[*sink.LostError](err) {
		switch {
		case IsLate(err):
			return &endError{fmt.Errorf("deliver to sink %s: %w", l.Name, err)}
		case IsPermanent(err):
			if err := l.stop(ctx, fmt.Errorf("deliver to sink %s: %w", l.Name, err)); err != nil {
				return err
			}
		default:
			if l.Observer.Failed(l.Name, err); isLost {
				return errAnew
			}
		}
		if err = l.reopen(ctx); err == nil {
			l.resume()
			l.Stops.Resume(l.index)
			return nil
		}
		if ctx.Err() != nil && !IsPermanent(err) && !IsLate(err) {
			return err
		}
	}
}
