package listener

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// refused is what a sink is to be given in the place of a record that it refuses, one refusal after the other.
func refused(t *testing.T, oversize Oversize, rec *change.Record, reasons ...string) *change.Record {
	t.Helper()
	l, _, end := newBus(t, roomy())
	defer end()
	l.Oversize = oversize
	todo := []due{{Record: rec}}
	for _, reason := range reasons {
		var err error
		if todo, err = l.rejected(t.Context(), todo, &sink.RejectedError{Reason: reason, Err: errors.New("no")}); err != nil || len(todo) != 1 {
			t.Fatalf("refused as %s: %d records, %v", reason, len(todo), err)
		}
	}
	return todo[0].Record
}

func podRecord(op change.Op) *change.Record {
	return &change.Record{
		Op: op, Stream: &change.Stream{Resource: change.Resource{Version: "v1", Name: "pods"}}, Key: change.Key{Namespace: "shop", Name: "web"},
		UID: "u", ResourceVersion: "7", Object: []byte(`{"kind":"Pod"}`), Received: time.Now(),
	}
}

// TestI4ADeleteGoesWithoutItsLastState, whatever oversize says and whatever is wrong with that: else consumers would
// have the object for ever. A delete that is refused even so has a note in its place.
func TestI4ADeleteGoesWithoutItsLastState(t *testing.T) {
	for _, reason := range []string{tooLarge, "invalid"} {
		for _, oversize := range []Oversize{{}, {Reject: true}, {Trims: []Trim{{Path: ".data", Cut: func(object []byte) ([]byte, error) { return object, nil }}}}} {
			bare := refused(t, oversize, podRecord(change.Deleted), reason)
			if bare.Op != change.Deleted || bare.Remarks == nil || !bare.Remarks.BeforeOmitted {
				t.Errorf("refused as %s with %+v, the delete is %s with %+v", reason, oversize, bare.Op, bare.Remarks)
			}
		}
	}
	if note := refused(t, Oversize{}, podRecord(change.Deleted), "invalid", "invalid"); note.Op != change.Gap || note.UID != "u" {
		t.Errorf("in the place of the delete is %s of %q", note.Op, note.UID)
	}
}

// TestI4ANoteHasATimeOfItsOwn: where that of the record is why it was refused, the note goes out all the same. So does
// an old gap of a stream.
func TestI4ANoteHasATimeOfItsOwn(t *testing.T) {
	for _, op := range []change.Op{change.Updated, change.Gap} {
		old := podRecord(op)
		old.Received = time.Now().Add(-2 * time.Hour)
		if op == change.Gap {
			old.Key, old.UID, old.Object = change.Key{}, "", nil
			old.Snapshot = &change.Snapshot{ID: "7.1", Reason: change.Gone, ResourceVersion: "7"}
		}
		if note := refused(t, Oversize{}, old, "invalid"); note.Op != change.Gap || time.Since(note.Received) > noteAge {
			t.Errorf("in the place of %s is %s of %v", op, note.Op, note.Received)
		}
	}
}

// obsolete are dead letters that give up each that is delivered.
type obsolete struct {
	DeadLetters
	given []string
}

func (o *obsolete) Delivered(rec *change.Record) (string, error) {
	o.given = append(o.given, rec.Op.String()+" "+rec.ResourceVersion)
	return "letter", nil
}

// TestI4TheLetterOfWhatIsDeliveredGoes: the limit is raised, and a snapshot tells the state again, or the record comes
// again after a crash before its note. What went out without a part of it, and a note, leave the letter.
func TestI4TheLetterOfWhatIsDeliveredGoes(t *testing.T) {
	letters, told := &obsolete{}, 0
	l := &Listener{Intake: Intake{Sink: Sink{Name: "bus", DeadLetters: letters}}, Config: Config{Observer: NopObserver()}}
	l.Observer.Replayed = func(_ string, rec *change.Record, err error) {
		if told++; rec.Replay.Letter != "letter" || err != nil {
			t.Errorf("told of letter %q, %v", rec.Replay.Letter, err)
		}
	}
	cut := podRecord(change.Updated)
	cut.Remarks = &change.Remarks{Trimmed: ".data"}
	l.giveUpLetters([]*change.Record{podRecord(change.Sync), cut, podRecord(change.Gap)})
	if len(letters.given) != 1 || letters.given[0] != "sync 7" || told != 1 {
		t.Errorf("given up are the letters of %q, and %d were told of", letters.given, told)
	}
}

// TestI5AMarkHasNoRecordBehindItThatNothingIsSavedOf: an attempt broke when the last record of the batch was in the
// log, and the next one writes a part of what is before that.
func TestI5AMarkHasNoRecordBehindItThatNothingIsSavedOf(t *testing.T) {
	for _, isHeld := range []bool{true, false} {
		l, _, end := newBus(t, roomy())
		var todo []due
		l.use(func(b *fifo.Backlog) {
			for at, name := range []string{"a", "b", "c"} {
				rec := podRecord(change.Updated)
				rec.Key.Name = name
				b.Overdraw(rec.Size())
				b.Push(rec)
				todo = append(todo, due{Record: rec, at: at})
			}
			_, l.taken = b.Take(nil)
		})
		if isHeld {
			l.retried = map[string]bool{todo[2].ID(l.ClusterUID).String(): true}
		}
		l.Target = ended{}
		todo, err := l.skipRetried(t.Context(), todo)
		must(t, err)
		l.wrote(todo, 1, "mark", time.Now())
		if entries, marked := len(l.ledger.entries), l.ledger.marked; entries != 1 || marked == isHeld {
			t.Errorf("the last one is held: %t; %d records are to be saved, and the mark: %t", isHeld, entries, marked)
		}
		end()
	}
}

// ended is a sink whose log is known to its end.
type ended struct{ sink.Sink }

func (ended) Write(context.Context, []sink.Message) (sink.Mark, error) { return "end", nil }

// TestI1WhatLeavesTheDiskIsBeforeTheMark: else the next process would take what the log has after an older mark for
// another's, and give up what is still on disk. The last record of a batch on disk is often one that is not written,
// and an attempt that broke may have written all of it.
func TestI1WhatLeavesTheDiskIsBeforeTheMark(t *testing.T) {
	for name, deliver := range map[string]func(l *Listener){
		"a bookmark is the last": func(l *Listener) {
			todo, err := l.prepare(t.Context(), 0, l.taken)
			must(t, err)
			l.wrote(todo, len(todo), "end", time.Now())
			l.acknowledge(len(l.taken))
		},
		"an attempt that broke wrote all": func(l *Listener) {
			l.mark, l.Target = "begin", ended{}
			todo, err := l.prepare(t.Context(), 0, l.taken)
			must(t, err)
			l.retried = map[string]bool{}
			for _, d := range todo {
				l.retried[d.ID(l.ClusterUID).String()] = true
			}
			todo, err = l.skipRetried(t.Context(), todo)
			if must(t, err); len(todo) > 0 {
				t.Fatalf("%d are to be written again", len(todo))
			}
			l.acknowledge(len(l.taken))
		},
	} {
		l, _, end := newBus(t, roomy())
		l.backlog = fifo.NewBacklog(fifo.Options{Queue: fifo.Limit{Bytes: 1 << 20, Records: 100}, Spool: 1 << 20, Batch: BatchLimit()})
		l.use(func(b *fifo.Backlog) {
			for _, rec := range []*change.Record{podRecord(change.Updated), {Stream: podRecord(change.Updated).Stream, Op: change.Bookmark}} {
				b.Overdraw(rec.Size())
				b.Push(rec)
			}
			_, l.taken = b.Take(nil)
			b.StartSpill()
			b.SpillNext(fifo.Limit{Bytes: 1 << 20, Records: 100})
			extent, chunks, _ := b.Saving(b.Chunks())
			b.Saved(extent, chunks)
		})
		if deliver(l); l.ledger.mark != "end" || !l.ledger.marked {
			t.Errorf("%s: the disk is freed at the mark %q (%t), want the log's end", name, l.ledger.mark, l.ledger.marked)
		}
		end()
	}
}
