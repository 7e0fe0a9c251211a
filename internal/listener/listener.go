package listener

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Listener carries records from its queue to its sink: client-go's processorListener with a bounded queue,
// acknowledgements and saved state. One goroutine runs it.
type Listener struct {
	Intake
	Config
	index    int
	books    *Books
	seldom   *backoff.ExponentialBackOff // between attempts to open a sink that is stopped
	patience patience                    // with a sink that failed
	out      *outgoing                   // the batch that is written

	taken    []*change.Record // the batch under way
	done     int              // how many records of it are acknowledged
	heldTo   int              // index in it: the log holds some before it already, from an attempt that failed
	mark     sink.Mark        // after the last write
	retried  map[string]bool  // ids that the log holds of a batch that failed
	tail     tail
	toldMark *sink.Mark    // the mark of which the sink was told that it is saved
	opened   chan struct{} // closed when the first attempt to open the sink is over
	left     left
}

// New makes the listener of the sink, and reads what is saved of it. index is its index in the Stops.
func New(index int, s *Sink, config *Config, books *Books) (*Listener, error) {
	l := &Listener{
		Intake: newIntake(s, config, &books.numbers), Config: *config, index: index, books: books, seldom: retrySeldom(),
		out: newOutgoing(s, config.ClusterUID), opened: make(chan struct{}),
	}
	return l, books.add(&l.Intake)
}

// Opened is closed when the first attempt to open the sink is over.
func (l *Listener) Opened() <-chan struct{} { return l.opened }

// errAnew says that the sink has to be opened as in a new process.
var errAnew = errors.New("the sink is to be opened anew")

// acknowledge notes that the sink has the first n records of the batch. Its log is at the mark then, unless that is
// beyond later records of the batch, which are not in the ledger yet.
func (l *Listener) acknowledge(n int) {
	if n <= l.done {
		return
	}
	mark := l.mark
	if n < l.heldTo {
		mark = ""
	}
	batch := l.taken[l.done:n]
	l.done = n
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acked(batch, string(mark))
	extent := l.backlog.Extent()
	isRead := !extent.Empty() // the next records are taken when this is saved
	l.work(isRead || len(l.ledger.entries) >= checkpoint.MaxRecords || l.ledger.size > maxUnsaved/2)
}

// stop stops the sink and returns when it is to be tried again: nil to reopen it, or errAnew to open it as in a new
// process. It returns another error if no sink is left, or the run ends.
func (l *Listener) stop(ctx context.Context, cause error) error {
	if err := l.Stops.Stop(l.index, cause); err != nil {
		return err
	}
	l.Observer.Stopped(l.Name, cause)
	anew := l.halt()
	if anew {
		l.leave()
	}
	if query(&l.Intake, (*fifo.Backlog).IsFinished) && !query(&l.Intake, (*fifo.Backlog).CanSpill) {
		return cause
	}
	if sink.IsFenced(cause) {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	again := time.NewTimer(l.seldom.NextBackOff())
	defer again.Stop()
	select {
	case <-again.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if anew {
		return errAnew
	}
	return nil
}

// keepLetter makes a dead letter of the record, and retries for as long as ctx lives: a full disk holds up the sink,
// which goes on by itself when there is space.
func (l *Listener) keepLetter(ctx context.Context, rec *change.Record, rejected *sink.RejectedError) (id string, err error) {
	if l.DeadLetters == nil {
		return "", nil
	}
	attempt := func() error {
		message, err := l.out.messageOf(ctx, rec) // rec is the whole record, whatever was cut to make it fit
		if err == nil {
			id, err = l.DeadLetters.Keep(rec, message, rejected)
		}
		if err != nil {
			l.Observer.NotKept(l.Name, err)
		}
		return err
	}
	err = backoff.Retry(attempt, backoff.WithContext(RetryForever(), ctx))
	if err == nil && id == "" {
		l.Observer.Dropped(l.Name)
	}
	return id, err
}

// claimed begins to find out what became of the letters that were on their way, as DeadLetters.Settle.
func (l *Listener) claimed() (held func(id string), end func() error, err error) {
	if l.DeadLetters == nil {
		return func(string) {}, func() error { return nil }, nil
	}
	return l.DeadLetters.Settle()
}

// settleLetters settles the letters that were on their way: the sink holds those of the events, and no others.
func (l *Listener) settleLetters(events ...string) error {
	held, end, err := l.claimed()
	if err != nil {
		return err
	}
	for _, event := range events {
		held(event)
	}
	return end()
}

// giveUpLetters removes the letters of states that the sink has now got whole.
func (l *Listener) giveUpLetters(batch []*change.Record) {
	letters, gives := l.DeadLetters.(Obsolete)
	for _, rec := range batch {
		if !gives || !rec.Op.OfObject() || rec.Replay != nil || rec.Remarks.LeftOut() != "" {
			continue
		}
		id, err := letters.Delivered(rec)
		if err != nil {
			err = errLetterStays(err)
		}
		if id != "" || err != nil {
			replayed := *rec
			replayed.Replay = &change.Replay{Letter: id}
			l.Observer.Replayed(l.Name, &replayed, err)
		}
	}
}

func errLetterStays(err error) error {
	return fmt.Errorf("delivered, but its letter is still there: %w", err)
}

// tail is what the log has after the mark, if records wait for the sink on disk.
type tail struct {
	first map[string]*bool // by the ids of the first batch on disk, and of their notes: whether the log holds it
	other bool             // the log holds another record
}

func (t *tail) take(id string, says bool) {
	if found := t.first[id]; found != nil {
		*found = true
		return
	}
	t.other = t.other || says && t.first != nil
}

// left are the parts that the sink is not given any more. With DeletesLeft it is told the deletes of their objects.
type left struct {
	ways   []Way // that the sink is given
	parts  []leftPart
	ended  int    // how many parts are deleted whole
	behind string // in the next part, the joined key of the object that was looked at last
}

// leftPart is a part of a resource that has left, and what its records carry.
type leftPart struct {
	Way
	at     checkpoint.Point
	epoch  string
	stream change.Stream
}

// Books are the saved states of all sinks. A save writes what all of them have to save in one synced batch (I5).
type Books struct {
	store    *checkpoint.Store
	observer Observer
	images   *Images // nil if no objects are kept
	numbers  Numbers

	mu      sync.Mutex // held during one attempt to save; guards the following, and what is applied to the sinks' states
	sinks   []*Intake
	open    []*Saving // one per sink, taken and not saved yet; nil is none
	applied int       // how many of them are part of the states
	spools  checkpoint.Spools
	ended   []Completed
}

// NewBooks returns the Books of the store.
func NewBooks(store *checkpoint.Store, observer Observer, images *Images) *Books {
	return &Books{store: store, observer: observer, images: images}
}

// add adds the sink, and reads what is saved of it.
func (b *Books) add(l *Intake) (err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l.state, err = b.store.LoadSink(l.Name); err != nil {
		return fmt.Errorf("read what is saved of sink %s: %w", l.Name, err)
	}
	if b.images != nil {
		b.images.add(l)
	}
	l.state.Merges = l.Coalesce
	l.shown.showAll(l.state)
	b.sinks = append(b.sinks, l)
	return nil
}

// Completed are the full comparisons whose ends were saved since the last call.
func (b *Books) Completed() []Completed {
	b.mu.Lock()
	defer b.mu.Unlock()
	ended := b.ended
	b.ended = nil
	return ended
}

// Save saves all that the sinks have acknowledged, and what goes to disk for them. It retries for as long as ctx lives:
// a full disk holds up the sinks, which go on by themselves when there is space.
func (b *Books) Save(ctx context.Context) error {
	var err error // of the last attempt
	attempt := func() error {
		if err = b.save(); err != nil && ctx.Err() == nil {
			b.observer.CommitFailed(err)
		}
		return err
	}
	if backoff.Retry(attempt, backoff.WithContext(RetryForever(), ctx)) != nil {
		return fmt.Errorf("save what is delivered: %w", err)
	}
	return nil
}

func (b *Books) save() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open != nil { // of an attempt that failed, so it lacks what was acknowledged since
		if err := b.saveOpen(); err != nil {
			return err
		}
	}
	for _, l := range b.sinks {
		b.open = append(b.open, l.Take())
	}
	b.applied, b.spools = 0, checkpoint.Spools{}
	return b.saveOpen()
}

// saveOpen saves what was taken. After an error the next call goes on where it was. The caller holds mu.
func (b *Books) saveOpen() error {
	began := time.Now()
	for ; b.applied < len(b.open); b.applied++ {
		if err := b.apply(b.sinks[b.applied], b.open[b.applied]); err != nil {
			return err
		}
	}
	var states []*checkpoint.SinkState
	var kept []checkpoint.KeptObject
	for at, s := range b.open {
		if state := b.sinks[at].state; !s.isEmpty() || state.Merging() {
			states = append(states, state)
		}
		for at := range s.entries {
			if object := s.entries[at].kept; object != nil {
				kept = append(kept, *object)
			}
		}
	}
	if err := b.write(states, b.spools, kept); err != nil {
		return err
	}
	saved := b.open
	b.open, b.spools = nil, nil
	for at, s := range saved {
		l := b.sinks[at]
		if !s.isEmpty() {
			l.saved(s)
			b.ended = append(b.ended, l.completed(s)...)
		}
		if l.state.Merging() {
			l.work(true)
		}
	}
	if len(states) > 0 {
		b.observer.Committed(time.Since(began))
	}
	return nil
}

// write saves the states, and with them what is kept of objects. The caller holds mu.
func (b *Books) write(states []*checkpoint.SinkState, spools checkpoint.Spools, kept []checkpoint.KeptObject) error {
	keeping := &checkpoint.Keeping{Objects: kept}
	for _, l := range b.sinks {
		keeping.Sinks = append(keeping.Sinks, l.Name)
	}
	return b.store.SaveSinks(states, spools, keeping)
}

// apply makes what was taken from the sink part of its state. The caller holds mu.
func (b *Books) apply(l *Intake, s *Saving) error {
	var err error
	for c := range s.chunks {
		chunk := &s.chunks[c]
		if chunk.Value, err = b.store.Encode(chunk.Records); err != nil {
			return fmt.Errorf("encode %d records to spool for sink %s: %w", len(chunk.Records), l.Name, err)
		}
	}
	if err := l.apply(s, b.spools); err != nil {
		return err
	}
	return l.state.DropPassed()
}

// with uses the sink's state.
func (b *Books) with(l *Intake, do func(state *checkpoint.SinkState) error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return do(l.state)
}

// change changes the sink's state while nothing of it is on its way, and saves that, and what is kept of objects.
func (b *Books) change(l *Intake, kept []checkpoint.KeptObject, do func(state *checkpoint.SinkState) error) error {
	return b.with(l, func(state *checkpoint.SinkState) error {
		if err := do(state); err != nil {
			return err
		}
		return b.write([]*checkpoint.SinkState{state}, nil, kept)
	})
}

// foldedAtOnce is how many ids of a log are folded before that is saved (I6).
const foldedAtOnce = 1024

// folding folds the ids that a log holds into what is saved of its sink.
type folding struct {
	books *Books
	sink  *Intake
	ours  func(id *change.ID) (bool, error)
	items []checkpoint.Item
	// unknown are the objects of which no kept form is known any more, with these items.
	unknown []checkpoint.KeptObject
	err     error
}

// take folds the next id. says is whether it says anything about what the sink has.
func (f *folding) take(text string) (says bool) {
	id, err := change.ParseID(text)
	if f.err != nil || err != nil {
		return false
	}
	ours, err := f.ours(&id)
	item, says := checkpoint.ItemOf(&id)
	if f.err = err; err != nil || !ours || !says {
		return false
	}
	if f.books.images != nil && item.Kind == checkpoint.Told {
		var unknown []checkpoint.KeptObject
		if unknown, f.err = f.books.images.unknown(f.sink.Name, &item); f.err != nil {
			return false
		}
		f.unknown = append(f.unknown, unknown...)
	}
	if f.items = append(f.items, item); len(f.items) >= foldedAtOnce {
		f.err = f.flush()
	}
	return true
}

// flush saves what was folded, and returns the first error of take or of itself.
func (f *folding) flush() error {
	if f.err != nil || len(f.items) == 0 {
		return f.err
	}
	err := f.books.change(f.sink, f.unknown, func(state *checkpoint.SinkState) error {
		for i := range f.items {
			if err := state.Found(&f.items[i]); err != nil {
				return err
			}
		}
		return nil
	})
	f.items, f.unknown = f.items[:0], nil
	return err
}

// Images knows each object as the sinks were told of it last, from what is saved and what is on its way to them.
type Images struct {
	store interface {
		Images(stream string, key change.Key) (change.Images, error)
	}

	mu      sync.Mutex // guards the following
	intakes []*Intake
}

// NewImages returns the Images of the store.
func NewImages(store *checkpoint.Store) *Images { return &Images{store: store} }

// Images are the images of the object.
func (m *Images) Images(stream *change.Stream, key change.Key) (change.Images, error) {
	m.mu.Lock()
	intakes := m.intakes
	m.mu.Unlock()
	var onWay change.Images
	for _, i := range intakes {
		if kept := i.onItsWay(checkpoint.Object{Resource: stream.Resource.String(), Key: key}); kept != nil {
			onWay = append(onWay, kept.Image)
		}
	}
	all, err := m.store.Images(stream.String(), key) // read last, so that nothing is missed that is saved meanwhile
	for _, image := range onWay {
		all = all.Tell(image)
	}
	return all, err
}

// onItsWay is the newest form of the object on its way to the sink that is to be kept, nil if there is none.
func (i *Intake) onItsWay(of checkpoint.Object) *checkpoint.KeptObject {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.told[of].kept
}

func (m *Images) add(i *Intake) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.intakes = append(slices.Clip(m.intakes), i)
}

// unknown returns entries that forget what is kept of an object, in each stream that may have it, if the sink's log has
// a newer state, whose form is not known.
func (m *Images) unknown(sinkName string, said *checkpoint.Item) (all []checkpoint.KeptObject, err error) {
	for _, stream := range []string{said.Resource, said.Key.Namespace + "/" + said.Resource} {
		images, err := m.store.Images(stream, said.Key)
		if err != nil {
			return nil, fmt.Errorf("look up the last form of %s in %s: %w", said.Key, stream, err)
		}
		if kept := images.Of(sinkName); kept.Object != nil && change.CompareVersions(kept.Version, said.At.Version) < 0 {
			all = append(all, checkpoint.KeptObject{Stream: stream, Key: said.Key, Image: change.Image{Sinks: []string{sinkName}}})
		}
	}
	return all, nil
}
