package listener

import (
	"cmp"
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

// SupersededError says that a dead letter is history: sent now, it would mislead consumers that keep states.
type SupersededError struct{ Now string } // what became of the object

func (e *SupersededError) Error() string { return "superseded: " + e.Now }

// deliverReplay sends a letter again. After a failure the sink is opened again, and the letter is gone by then if the
// sink's log has its event.
func (l *Listener) deliverReplay(ctx context.Context, at int, rec *change.Record) error {
	replayed, err := l.admit(rec)
	if err != nil {
		l.returned(rec, err)
		return nil
	}
	todo := []due{{Record: replayed, at: at}}         // after a rejection, a smaller one
	for tried := false; len(todo) > 0; tried = true { // it ends when the letter is delivered or rejected, and answered
		found, err := l.DeadLetters.Claim(rec.Replay.Letter)
		switch {
		case err != nil:
			l.returned(rec, err)
			return nil
		case !found && !tried:
			l.returned(rec, errors.New("there is no such dead letter any more: it was sent again, or deleted"))
			return nil
		case !found: // the log has its event, or somebody deleted the letter meanwhile
			l.returned(rec, nil)
			return nil
		}
		if todo, err = l.write(ctx, todo); err != nil {
			rec.Replay.Done("", fmt.Errorf("not delivered yet: %w", err))
			return err
		}
	}
	return nil
}

// admit returns the record marked with what it is worth now. Newer records that wait in the queue count, too.
func (l *Listener) admit(rec *change.Record) (*change.Record, error) {
	now, err := l.superseded(rec)
	if err != nil {
		return nil, err
	}
	worth := change.Current
	if now != "" {
		if worth = change.History; !rec.Replay.Force {
			return nil, &SupersededError{now}
		}
	}
	marked := *rec
	marked.Remarks = &change.Remarks{Replayed: worth}
	return &marked, nil
}

// superseded says what the sink was told of the object, if that is not what the record says; "" if it is.
func (l *Listener) superseded(rec *change.Record) (now string, err error) {
	row, err := l.Newest(checkpoint.Object{Resource: rec.Stream.Resource.String(), Key: rec.Key})
	switch {
	case err != nil:
		return "", fmt.Errorf("find %s %s in the saved state: %w", rec.Stream, rec.Key, err)
	case rec.Op == change.Deleted && !row.Exists():
		return "", nil
	case !row.Exists():
		return "the object is gone", nil
	case row.UID != rec.UID:
		return fmt.Sprintf("the object was deleted and made again, and is at version %s", row.At.Version), nil
	case rec.Op == change.Deleted:
		return fmt.Sprintf("the object is there, at version %s", row.At.Version), nil
	case row.At.Version != rec.ResourceVersion:
		return fmt.Sprintf("the object is at version %s", row.At.Version), nil
	}
	return "", nil
}

// prepare gives the records the form of this sink, and leaves out what it does not take. A note takes the place of each
// record that no sink may have.
func (l *Listener) prepare(ctx context.Context, first int, batch []*change.Record) (todo []due, err error) {
	todo = make([]due, 0, len(batch))
	for i, rec := range batch {
		if rec.Op == change.Bookmark {
			continue
		}
		if l.Narrow != nil {
			if rec = l.Narrow(rec); rec.Filtered {
				continue
			}
		}
		if rec.Withheld != "" {
			if rec, err = l.withheld(ctx, rec); err != nil {
				return nil, err
			}
		}
		todo = append(todo, due{Record: rec, at: first + i})
	}
	return todo, nil
}

// write makes one attempt with what is due, and returns what is still to be written. If the sink failed, it is open
// again by then.
func (l *Listener) write(ctx context.Context, todo []due) ([]due, error) {
	rest, err := l.attempt(ctx, todo)
	var failure *sinkError
	if !errors.As(err, &failure) {
		return rest, err
	}
	l.out.doubted()
	return rest, l.mend(ctx, failure.error)
}

// attempt makes one attempt, and returns what is still to be written.
func (l *Listener) attempt(ctx context.Context, todo []due) ([]due, error) {
	messages, err := l.out.encode(ctx, todo)
	encoded := todo[:l.out.encoded()]
	if err != nil && len(encoded) == 0 {
		return l.unencoded(ctx, todo, err)
	}
	if err := l.announce(ctx, messages); err != nil {
		return todo, err
	}
	l.tellSaved() // what could not be encoded is for the next attempt
	began := time.Now()
	mark, err := l.Target.Write(ctx, messages)
	var rejected *sink.RejectedError
	switch {
	case err == nil:
		l.out.written(len(encoded))
		l.wrote(todo, len(encoded), mark, began)
		return todo[len(encoded):], nil
	case errors.As(err, &rejected):
		at := l.out.recordOf(rejected.Index)
		if at == len(encoded) {
			return todo, &sinkError{&sink.PermanentError{Err: fmt.Errorf("message %d of %d is rejected: %w", rejected.Index, len(messages), err)}}
		}
		l.out.written(at)
		l.wrote(todo, at, mark, began)
		return l.rejected(ctx, todo[at:], rejected)
	case ctx.Err() != nil:
		return nil, err
	}
	return todo, &sinkError{err}
}

// announce saves a mark with every place that the messages are for, if the sink is an Announcer: after a crash, the
// messages are looked for in the places of the mark.
func (l *Listener) announce(ctx context.Context, messages []sink.Message) error {
	places, asks := l.Target.(sink.Announcer)
	if !asks {
		return nil
	}
	add, err := places.Announce(ctx, messages)
	if err != nil && ctx.Err() == nil {
		return &sinkError{err}
	}
	if err != nil || add == nil {
		return err
	}
	if err := l.books.Save(ctx); err != nil { // so that no earlier mark is saved later
		return err
	}
	saved, err := add(*l.savedMark.Load())
	if err != nil {
		return err
	}
	l.use(func(*fifo.Backlog) { l.ledger.mark, l.ledger.marked = string(saved), true })
	l.mark, err = add(l.mark)
	return errors.Join(err, l.books.Save(ctx))
}

// unencoded treats the error of encoding the first record: as one of the sink, unless the record is rejected or its
// stream has to wait.
func (l *Listener) unencoded(ctx context.Context, todo []due, err error) ([]due, error) {
	var rejected *sink.RejectedError
	switch {
	case errors.As(err, &rejected):
		return l.rejected(ctx, todo, rejected)
	case ctx.Err() != nil:
		return nil, err
	case l.Gate != nil && !l.Gate.Admits(todo[0].Stream): // it was queued when the stream was admitted
		return todo, l.awaitGate(ctx, todo[0].Stream)
	}
	return todo, &sinkError{err}
}

// awaitGate returns when records of the stream can be encoded, or with ctx's error.
func (l *Listener) awaitGate(ctx context.Context, stream *change.Stream) error {
	for {
		changed := l.Gate.Changed()
		if l.Gate.Admits(stream) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// tellSaved tells the sink of the saved mark, if it is a Keeper.
func (l *Listener) tellSaved() {
	saved := l.savedMark.Load()
	if keeper, ok := l.Target.(sink.Keeper); ok && saved != l.toldMark {
		keeper.Keep(*saved)
	}
	l.toldMark = saved
}

// wrote notes that the first n of what is due are durable.
func (l *Listener) wrote(todo []due, n int, mark sink.Mark, began time.Time) {
	if n == 0 {
		return
	}
	l.mark = mark
	l.seldom.Reset()
	l.patience.reset()
	batch := recordsOf(todo[:n])
	l.marked(batch)
	l.Observer.Written(l.Name, batch, time.Since(began))
	l.acknowledge(upTo(todo, n))
	if slices.ContainsFunc(batch, isNote) { // to save its object soon: in the log its name may be a hash
		l.work(true)
	}
}

func isNote(rec *change.Record) bool { return rec.Op == change.Gap && rec.Key.Name != "" }

// upTo is the index in the batch up to which everything is done when the first n of todo are.
func upTo(todo []due, n int) int {
	if n == len(todo) {
		return todo[n-1].at + 1
	}
	return todo[n].at
}

// skipRetried leaves out what the log holds of a batch that failed. The mark is after that then.
func (l *Listener) skipRetried(ctx context.Context, todo []due) ([]due, error) {
	if len(l.retried) == 0 {
		return todo, nil
	}
	has := l.held(recordsOf(todo), func(id string) bool { return l.retried[id] })
	l.retried = nil
	todo = slices.DeleteFunc(todo, func(d due) bool {
		if has[d.Record] {
			l.heldTo = max(l.heldTo, d.at+1)
		}
		return has[d.Record]
	})
	return todo, l.readMark(ctx)
}

// tooLarge is the Reason of a *sink.RejectedError to which Oversize applies.
const tooLarge = "too_large"

// rejected decides what becomes of the first record, which the sink will never take, and returns what is still to be
// written. In its place that is a smaller record, or a note, so that the log shows the loss where it happened (I4). A
// note is sent only when the record is durable as a dead letter (I1).
func (l *Listener) rejected(ctx context.Context, todo []due, rejected *sink.RejectedError) ([]due, error) {
	rec := todo[0].Record
	if rec.Op == change.Resolved { // the next one says more
		return todo[1:], nil
	}
	if rec.Op == change.Gap && rejected.NoPlace {
		return todo[1:], l.withoutNote(ctx, rec, rejected)
	}
	if lighter := l.lighter(ctx, &todo[0], rejected); lighter != nil {
		todo[0].whole, todo[0].Record = cmp.Or(todo[0].whole, rec), lighter
		return todo, nil
	}
	if rec.Op == change.Gap {
		return todo, &sinkError{&sink.PermanentError{Err: fmt.Errorf("even the note of a rejected record is rejected: %w", rejected)}}
	}
	rec = cmp.Or(todo[0].whole, rec)
	todo[0] = due{Record: rec, at: todo[0].at}
	if rec.Replay != nil {
		l.returned(rec, fmt.Errorf("rejected again: %w", rejected.Err))
		return todo[1:], nil
	}
	if rejected.Reason == tooLarge && l.Oversize.Reject {
		return todo, &sinkError{refusal(l.Name, rec, rejected)}
	}
	letter, err := l.keepLetter(ctx, rec, rejected)
	if err != nil {
		return nil, err
	}
	l.Observer.Rejected(l.Name, rec, rejected.Reason, rejected.Err)
	todo[0].Record = noteOf(rec, rejected.Reason, letter)
	return todo, nil
}

// lighter is the record without something that the sink may have refused, nil if nothing more can be left out.
func (l *Listener) lighter(ctx context.Context, d *due, rejected *sink.RejectedError) *change.Record {
	switch now := time.Now(); {
	case d.Op == change.Gap && now.Sub(d.Received) > noteAge: // the sink may have been stopped since
		return dated(d.Record, now)
	case d.Op == change.Gap:
		return change.ShorterNote(d.Record)
	case rejected.Reason == tooLarge:
		if bare := l.out.withoutBefore(ctx, d.Record); bare != nil {
			return bare
		}
		if smaller := d.trim(l.Oversize.Trims); smaller != nil {
			return smaller
		}
	case rejected.NoPlace:
		return nil
	}
	return withoutState(d.Record)
}

// noteAge is how old a note may be, so that no sink refuses it for its time: the record's time may be why it was
// refused.
const noteAge = time.Minute

// noteOf is the note of the record, received now.
func noteOf(rec *change.Record, reason, letter string) *change.Record {
	return dated(change.NoteOf(rec, reason, letter), time.Now())
}

func dated(rec *change.Record, at time.Time) *change.Record {
	now := *rec
	now.Received = at
	return &now
}

// withoutNote goes on without a gap record whose topic or subject cannot be written to, so nobody reads there: the dead
// letter, the log line and the metric report the record. A gap of the stream has no letter yet, so it becomes one.
func (l *Listener) withoutNote(ctx context.Context, rec *change.Record, rejected *sink.RejectedError) error {
	if rec.Remarks == nil || rec.Remarks.Rejected == "" {
		if _, err := l.keepLetter(ctx, rec, rejected); err != nil {
			return err
		}
		l.Observer.Rejected(l.Name, rec, rejected.Reason, rejected.Err)
	}
	return nil
}

// withheld makes the note of a record that no sink may have.
func (l *Listener) withheld(ctx context.Context, rec *change.Record) (*change.Record, error) {
	why, letter := &sink.RejectedError{Reason: rec.Withheld, Err: nothingLeft(rec.Withheld)}, ""
	if why.Err == nil {
		whole := *rec
		whole.Withheld, why.Err = "", errWithheld
		var err error
		if letter, err = l.keepLetter(ctx, &whole, why); err != nil {
			return nil, err
		}
	}
	l.Observer.Rejected(l.Name, rec, why.Reason, why.Err)
	return noteOf(rec, why.Reason, letter), nil
}

// The errors of records that are withheld.
var (
	errWithheld   = errors.New("its filter failed, and filterFailure says that it goes nowhere: correct the filter, and send it again")
	errUnreadable = errors.New("the object cannot be read as the API server sent it: look at it with kubectl, and change or delete it")
	errOtherForm  = errors.New("it lay on disk, cut and redacted by other rules than today's, and cannot be shaped again: exporter snapshot sends the object as it is now")
)

// nothingLeft is the error of a withheld record without anything that a letter could keep, nil for others.
func nothingLeft(withheld string) error {
	switch withheld {
	case change.Unreadable:
		return errUnreadable
	case WithheldByForm:
		return errOtherForm
	}
	return nil
}

// refusal is the error that stops the sink. The record is written again when the sink is tried again.
func refusal(sinkName string, rec *change.Record, rejected *sink.RejectedError) error {
	return &sink.PermanentError{Err: fmt.Errorf("%s %s, uid %s, resourceVersion %s, an object of %d bytes, is too large for the sink: %w, or give sink %s oversize: deadletter or oversize: trim",
		rec.Stream, rec.Key, rec.UID, rec.ResourceVersion, len(rec.Object), rejected.Err, sinkName)}
}

// marked handles records of the durable batch that were trimmed or replayed, or that make a letter obsolete. It is
// called before their mark counts: so a crash before it leaves a replayed event after the saved mark, where open finds
// it.
func (l *Listener) marked(batch []*change.Record) {
	l.giveUpLetters(batch)
	for _, rec := range batch {
		if rec.Remarks.LeftOut() != "" {
			l.Observer.Trimmed(l.Name, rec)
		}
		if rec.Replay == nil {
			continue
		}
		err := l.settleLetters(rec.ID(l.ClusterUID).String())
		if err != nil {
			err = errLetterStays(err)
		}
		l.Observer.Replayed(l.Name, rec, err)
		rec.Replay.Done(rec.Remarks.LeftOut(), err)
	}
}

// returned answers a replay that was not delivered: the letter stays, unless the log has its event.
func (l *Listener) returned(rec *change.Record, why error) {
	why = errors.Join(why, l.settleLetters())
	l.Observer.Replayed(l.Name, rec, why)
	rec.Replay.Done("", why)
}
