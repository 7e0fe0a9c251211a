package sinktest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// lost is I4: a log that ends before the mark is told, and the sink goes on at the log's end.
func (r *rig) lost(fault func(*testing.T), whileOpen bool) {
	r.Helper()
	s, _ := r.opened("")
	r.write(s, nil)
	var written []sink.Message
	var mark sink.Mark
	for range 3 {
		batch := r.maker.Batch(10)
		written = append(written, batch...)
		mark = r.write(s, batch)
	}
	if whileOpen {
		fault(r.T)
		r.seesLoss(s)
	} else {
		r.close(s)
		fault(r.T)
		s = r.newSink()
	}
	left := survivors(r, written)
	r.opensLost(s, mark)
	r.goesOn(s, left)
}

func (r *rig) seesLoss(s sink.Sink) {
	r.Helper()
	var permanent *sink.PermanentError
	_, err := writeCopy(r.ctx, s, r.maker.Batch(1))
	if err == nil {
		r.Fatal("Write to a log that lost what it held returned nil")
	}
	if errors.As(err, &permanent) || r.ctx.Err() != nil {
		r.Fatalf("Write: got %v, want an error that Open answers", err)
	}
}

func (r *rig) opensLost(s sink.Sink, mark sink.Mark) {
	r.Helper()
	ids, err := Open(r.ctx, s, mark)
	var lost *sink.LostError
	if !errors.As(err, &lost) {
		r.Fatalf("Open at %q, which is gone: got %v, want a LostError", mark, err)
	}
	if lost.Log == "" || lost.Want == "" || lost.Have == "" || len(ids) > 0 {
		r.Fatalf("got %+v and ids %q, want every field set and no ids", lost, ids)
	}
}

func (r *rig) goesOn(s sink.Sink, left []sink.Message) {
	r.Helper()
	before := r.write(s, nil)
	batch := r.maker.Batch(15)
	mark := r.write(s, batch)
	r.check(append(left, batch...))
	r.close(s)
	again, ids := r.opened(before)
	r.same(ids, batch)
	r.close(again)
	_, ids = r.opened(mark)
	r.same(ids, nil)
}

// survivors is what the fault left of what was written.
func survivors(r *rig, written []sink.Message) []sink.Message {
	r.Helper()
	kept := map[string]bool{}
	for _, stored := range r.env.Messages(r.T) {
		kept[stored.ID] = true
	}
	var left []sink.Message
	for i := range written {
		if kept[written[i].ID] {
			left = append(left, written[i])
		}
	}
	if len(left) == len(written) {
		r.Fatal("the fault of the environment lost nothing")
	}
	return left
}

// line does with a sink what the pipeline does: it writes, keeps a mark that may lag behind, and answers every error
// and every crash by opening at that mark and writing what the log does not hold yet.
type line struct {
	*rig
	sink  sink.Sink
	saved sink.Mark      // what a checkpoint holds
	after []sink.Message // what was handed over after saved
	acked int            // how many of after are known to be durable
	last  sink.Mark      // the place after all of after, if acked is all of it
	all   []sink.Message // what was handed over since the beginning
}

// newLine opens a new sink on the empty log and takes its first mark, so that a crash in the first batch is covered.
func (r *rig) newLine() *line {
	r.Helper()
	s, _ := r.opened("")
	mark := r.write(s, nil)
	return &line{rig: r, sink: s, saved: mark, last: mark}
}

// hand writes a batch under the context, and returns what Write returned.
func (l *line) hand(ctx context.Context, batch []sink.Message) error {
	l.after = append(l.after, batch...)
	l.all = append(l.all, batch...)
	mark, err := writeCopy(ctx, l.sink, batch)
	if err == nil {
		l.acked, l.last = len(l.after), mark
	}
	return err
}

// deliver writes a batch and does not rest until the sink acknowledged all of it.
func (l *line) deliver(batch []sink.Message) {
	l.Helper()
	if err := l.hand(l.ctx, batch); err != nil {
		l.transient(err)
		l.recover(l.sink)
	}
}

// recover opens the sink at the saved mark and writes what is missing, again and again until nothing is.
func (l *line) recover(s sink.Sink) {
	l.Helper()
	for l.sink = s; ; {
		ids, err := Open(l.ctx, s, l.saved)
		if err != nil {
			l.transient(err)
			continue
		}
		rest := l.undelivered(ids, l.after)
		l.holdsAcked(rest)
		mark, err := writeCopy(l.ctx, s, rest)
		if err == nil {
			l.acked, l.last = len(l.after), mark
			return
		}
		l.transient(err)
	}
}

// holdsAcked is I1: what Write once acknowledged is in the log for ever.
func (l *line) holdsAcked(rest []sink.Message) {
	l.Helper()
	for i := range rest {
		sameID := func(m sink.Message) bool { return m.ID == rest[i].ID }
		if at := slices.IndexFunc(l.after, sameID); at < l.acked {
			l.Fatalf("%s was acknowledged, and Open at a mark before it does not find it", rest[i].ID)
		}
	}
}

// transient fails on an error that opening again does not mend, the end of the case's patience among them.
func (l *line) transient(err error) {
	l.Helper()
	var permanent *sink.PermanentError
	var rejected *sink.RejectedError
	var lost *sink.LostError
	if l.ctx.Err() != nil || errors.As(err, &permanent) || errors.As(err, &rejected) || errors.As(err, &lost) {
		l.Fatalf("after %d messages: %v", len(l.all), err)
	}
}

// save is a checkpoint.
func (l *line) save() {
	l.saved, l.after, l.acked = l.last, nil, 0
}

// restart ends the sink's process, with or without warning, and starts another one.
func (l *line) restart(end func(sink.Sink)) {
	l.Helper()
	end(l.sink)
	l.recover(l.newSink())
}

// lanes are the sequences that a log promises to keep: one of all messages, or one for each key and destination.
type lanes struct {
	of   map[string]string   // message id -> lane
	left map[string][]string // lane -> ids that were not seen yet, oldest first, each once
	// again is how often an id may still come directly after itself: once less than it has messages.
	again map[string]int
	last  map[string]string // lane -> the id seen last
}

func (r *rig) lanes(messages []sink.Message) lanes {
	l := lanes{of: make(map[string]string, len(messages)), left: map[string][]string{}, again: map[string]int{}, last: map[string]string{}}
	for i := range messages {
		m := &messages[i]
		if m.Value == nil && r.env.SkipsTombstones {
			continue
		}
		lane := ""
		if r.env.Partitioned {
			lane = m.Destination + "\x00" + string(m.Key)
		}
		if _, there := l.of[m.ID]; there {
			l.again[m.ID]++
			continue
		}
		l.of[m.ID] = lane
		l.left[lane] = append(l.left[lane], m.ID)
	}
	return l
}

// undelivered is what of the messages is not among the ids and leaves something in the log. It fails unless the ids
// are a prefix of the messages, or, where the log is partitioned, a prefix of the messages of each key.
func (r *rig) undelivered(ids []string, messages []sink.Message) []sink.Message {
	r.Helper()
	l := r.lanes(messages)
	for i, id := range ids {
		lane, known := l.of[id]
		if !known {
			r.Fatalf("id %d of %d, %q, was not expected", i, len(ids), id)
		}
		if l.again[id] > 0 && l.last[lane] == id {
			l.again[id]--
			continue
		}
		if left := l.left[lane]; len(left) == 0 || left[0] != id {
			r.Fatalf("id %d of %d, %s, came twice or out of its order", i, len(ids), id)
		}
		l.left[lane], l.last[lane] = l.left[lane][1:], id
	}
	missing := map[string]bool{}
	for _, left := range l.left {
		for _, id := range left {
			missing[id] = true
		}
	}
	var rest []sink.Message
	for i := range messages {
		if missing[messages[i].ID] {
			rest = append(rest, messages[i])
		}
	}
	return rest
}

// same fails unless the ids are those of the messages, once each, in the order that the log promises.
func (r *rig) same(ids []string, want []sink.Message) {
	r.Helper()
	if rest := r.undelivered(ids, want); len(rest) > 0 {
		r.Fatalf("%d of %d messages are missing, the first is %s", len(rest), len(want), rest[0].ID)
	}
}

// patience bounds every case, so that a sink that hangs fails by name, on a machine that is busy with other tests.
const patience = 4 * time.Minute

// rig is the bench that one case works at.
type rig struct {
	*testing.T
	env     *Env
	ctx     context.Context
	prompt  time.Duration
	maker   Maker
	crashed map[sink.Sink]bool
}

func newRig(t *testing.T, env *Env) *rig {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return &rig{T: t, env: env, ctx: ctx, prompt: cmp.Or(env.Prompt, time.Minute), maker: Maker{Destination: env.Destination}, crashed: map[sink.Sink]bool{}}
}

// newSink is a sink that is closed at the end of the case, whatever becomes of it.
func (r *rig) newSink() sink.Sink {
	s := r.env.Sink(r.T)
	r.Cleanup(func() {
		if r.crashed[s] {
			return
		}
		// The test's own context has ended by now.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), r.prompt)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			r.Errorf("Close: %v", err)
		}
	})
	return s
}

func (r *rig) crash(s sink.Sink) {
	if r.env.Crash != nil {
		r.env.Crash(s)
		r.crashed[s] = true
	}
}

func (r *rig) close(s sink.Sink) {
	r.Helper()
	if err := s.Close(r.ctx); err != nil {
		r.Fatalf("Close: %v", err)
	}
}

// opened is a new sink, open at the mark, and the ids that were found after it.
func (r *rig) opened(mark sink.Mark) (sink.Sink, []string) {
	r.Helper()
	s := r.newSink()
	return s, r.open(s, mark)
}

func (r *rig) open(s sink.Sink, mark sink.Mark) []string {
	r.Helper()
	ids, err := Open(r.ctx, s, mark)
	if err != nil {
		r.Fatalf("Open at %q: %v", mark, err)
	}
	if mark == "" && len(ids) > 0 {
		r.Fatalf("Open at the empty mark returned %q", ids)
	}
	return ids
}

// write hands the sink copies and spoils them once it has returned: from there on they are the pipeline's again.
func (r *rig) write(s sink.Sink, batch []sink.Message) sink.Mark {
	r.Helper()
	mark, err := writeCopy(r.ctx, s, batch)
	if err != nil {
		r.Fatalf("Write of %d messages: %v", len(batch), err)
	}
	if mark == "" {
		r.Fatalf("Write of %d messages returned the empty mark, which stands for a sink that never wrote", len(batch))
	}
	return mark
}

func writeCopy(ctx context.Context, s sink.Sink, batch []sink.Message) (sink.Mark, error) {
	lent := make([]sink.Message, len(batch))
	for i := range batch {
		lent[i] = batch[i]
		lent[i].Key = bytes.Clone(batch[i].Key)
		lent[i].Value = bytes.Clone(batch[i].Value)
		lent[i].Headers = slices.Clone(batch[i].Headers)
	}
	mark, err := s.Write(ctx, lent)
	for i := range lent {
		for _, bs := range [][]byte{lent[i].Key, lent[i].Value} {
			for j := range bs {
				bs[j] = '#'
			}
		}
		clear(lent[i].Headers)
		lent[i] = sink.Message{ID: "spoiled"}
	}
	return mark, err
}

// check compares what a reader finds with what was acknowledged, and returns the stored messages that are not ours.
func (r *rig) check(want []sink.Message) []Stored {
	r.Helper()
	var ours, foreign []Stored
	for _, stored := range r.env.Messages(r.T) {
		if strings.HasPrefix(stored.ID, "0a1b2c3d/") {
			ours = append(ours, stored)
		} else {
			foreign = append(foreign, stored)
		}
	}
	found := make([]string, len(ours))
	for i := range ours {
		found[i] = ours[i].ID
	}
	r.same(found, want)
	r.sameContent(ours, want)
	return foreign
}

// sameContent compares the messages one by one, those of one id in their order.
func (r *rig) sameContent(ours []Stored, want []sink.Message) {
	r.Helper()
	wanted := make(map[string][]*sink.Message, len(want))
	for i := range want {
		if want[i].Value == nil && r.env.SkipsTombstones {
			continue
		}
		wanted[want[i].ID] = append(wanted[want[i].ID], &want[i])
	}
	for i := range ours {
		stored := &ours[i]
		message := wanted[stored.ID][0] // same found that the id is wanted, and not too often
		wanted[stored.ID] = wanted[stored.ID][1:]
		if !bytes.Equal(stored.Value, message.Value) || (stored.Value == nil) != (message.Value == nil) {
			r.Fatalf("value of %s: stored %.200q, written %.200q", stored.ID, stored.Value, message.Value)
		}
		if stored.Destination != "" && stored.Destination != message.Destination {
			r.Fatalf("%s: stored at %q, written to %q", stored.ID, stored.Destination, message.Destination)
		}
		if stored.Headers != nil {
			r.sameHeaders(stored, message)
		}
	}
	for id, left := range wanted {
		if len(left) > 0 {
			r.Fatalf("%d messages of %s are missing: a record is torn", len(left), id)
		}
	}
}

func (r *rig) sameHeaders(stored *Stored, message *sink.Message) {
	r.Helper()
	want := append([]sink.Header{
		{Name: sink.HeaderID, Value: message.ID},
		{Name: sink.HeaderOp, Value: message.Op},
		{Name: sink.HeaderResourceVersion, Value: message.ResourceVersion},
	}, message.Headers...)
	for _, h := range want {
		if !slices.Contains(stored.Headers, h) {
			r.Fatalf("%s: header %q is missing in %q", stored.ID, h, stored.Headers)
		}
	}
}

// Env is one log and what can be done to it. The suite calls its functions from the test's goroutine, except for Cut
// and the function that Stall returns. Sink and Messages are needed; a nil fault skips the tests that need it.
type Env struct {
	// Sink returns a new sink on the log, not opened, as a restarted process would make it.
	Sink func(t *testing.T) sink.Sink
	// Messages returns all that a reader who knows nothing of the sink finds in the log, oldest first.
	Messages func(t *testing.T) []Stored
	// Destination gives the destination of the message with the number, counted from 0; nil is "" for all.
	Destination func(number int) string

	// Partitioned says that the log keeps the order of messages with the same Key only, not of all.
	Partitioned bool
	// SkipsTombstones says that a message without a value leaves nothing in the log.
	SkipsTombstones bool
	// Pairs says that the sink is given records of several messages, such as deletes with tombstones, which are durable
	// together or not at all.
	Pairs bool
	// TooLarge is the size of a value that is rejected, 0 if there is none.
	TooLarge int
	// MaxValue is the size of the largest value that the log is tried with, 0 for 1 MiB.
	MaxValue int
	// Prompt is how soon a call must return when its context has ended, 0 for a minute.
	Prompt time.Duration
	// Leaks lists goroutines of the environment that may outlive a sink, such as those of a server in this process.
	Leaks []goleak.Option

	// Crash releases what the kernel would release if the process of the open sink were killed, and flushes nothing.
	// The sink is not used after it. nil means that forgetting a sink is crash enough: the suite closes it at the
	// end of the test.
	Crash func(s sink.Sink)
	// Foreign puts something into the log that kubecdc did not write.
	Foreign func(t *testing.T)
	// Cut breaks the connections that exist now. It may be called by any goroutine.
	Cut func()
	// Stall makes the transport take nothing, as a full disk or an unreachable broker, until resume is called.
	Stall func(t *testing.T) (resume func())
	// Truncate makes the log lose its newest messages, at least one and not all.
	Truncate func(t *testing.T)
	// Recreate deletes the log and, where a sink would not create it, makes it again, empty.
	Recreate func(t *testing.T)
}

// Stored is one message as a reader finds it in the log.
type Stored struct {
	ID          string
	Value       []byte // nil for a tombstone
	Destination string // not compared if empty
	// Headers has all headers of the message, kubecdc's own among them; nil where the transport has none.
	Headers []sink.Header
}

// Open opens the sink and returns the ids that it finds after the mark.
func Open(ctx context.Context, s sink.Sink, mark sink.Mark) (ids []string, err error) {
	err = s.Open(ctx, sink.Opening{Mark: mark, After: collect(&ids)})
	if err != nil {
		return nil, err
	}
	return ids, nil
}

// collect is a tail that keeps all ids.
func collect(ids *[]string) sink.Tail {
	return func() func(string) {
		*ids = nil
		return func(id string) { *ids = append(*ids, id) }
	}
}
