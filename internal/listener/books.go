package listener

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Books are the saved states of all sinks. What all of them have to save goes into one synced batch (I5), whoever asks
// for it.
type Books struct {
	store    *checkpoint.Store
	observer Observer
	images   *Images // nil where no objects are kept
	numbers  Numbers

	mu        sync.Mutex // held during one attempt to save; guards the following
	listeners []*Intake
	states    map[string]*checkpoint.SinkState
	open      []*Saving // taken, and not saved yet, by listener; nil is none
	applied   int       // so many of them are part of the states
	spools    checkpoint.Spools
}

// NewBooks are those of the store.
func NewBooks(store *checkpoint.Store, observer Observer, images *Images) *Books {
	return &Books{store: store, observer: observer, images: images, states: map[string]*checkpoint.SinkState{}}
}

// add reads what is saved of its sink.
func (b *Books) add(l *Intake) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	state, err := b.store.LoadSink(l.Name)
	if err != nil {
		return fmt.Errorf("read what is saved of sink %s: %w", l.Name, err)
	}
	b.states[l.Name] = state
	l.shown.showAll(state)
	b.listeners = append(b.listeners, l)
	return nil
}

// Save saves all that the sinks have acknowledged, and what goes to disk for them. It retries as long as ctx lives: a
// full disk stops the sinks, and they go on by themselves when there is space.
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
	if b.open != nil { // of an attempt that failed: what was acknowledged since is not among it
		if err := b.saveOpen(); err != nil {
			return err
		}
	}
	for _, l := range b.listeners {
		b.open = append(b.open, l.Take())
	}
	b.applied, b.spools = 0, checkpoint.Spools{Chunks: map[string][]fifo.Chunk{}, Extents: map[string]fifo.Spool{}}
	return b.saveOpen()
}

// saveOpen saves what is taken. After an error it goes on where it was; the caller holds mu.
func (b *Books) saveOpen() error {
	began := time.Now()
	for ; b.applied < len(b.open); b.applied++ {
		if err := b.apply(b.listeners[b.applied], b.open[b.applied]); err != nil {
			return err
		}
	}
	var states []*checkpoint.SinkState
	for at, s := range b.open {
		if state := b.states[b.listeners[at].Name]; !s.IsEmpty() || state.Merging() {
			states = append(states, state)
		}
	}
	if err := b.write(states, b.spools); err != nil {
		return err
	}
	saved := b.open
	b.open, b.spools = nil, checkpoint.Spools{}
	for at, s := range saved {
		state := b.states[b.listeners[at].Name]
		if !s.IsEmpty() {
			b.listeners[at].saved(s, state)
		}
		if state.Merging() {
			b.listeners[at].work(true)
		}
	}
	if len(states) > 0 {
		b.observer.Committed(time.Since(began))
	}
	return nil
}

// write saves the states, and the objects that are kept with them; the caller holds mu.
func (b *Books) write(states []*checkpoint.SinkState, spools checkpoint.Spools) error {
	if b.images == nil {
		return b.store.SaveSinks(states, spools, nil)
	}
	err := b.store.SaveSinks(states, spools, b.images.take())
	if err == nil {
		b.images.saved()
	}
	return err
}

// apply makes what was taken from the listener part of its sink's state; the caller holds mu.
func (b *Books) apply(l *Intake, s *Saving) error {
	chunks := s.Chunks()
	var err error
	for c := range chunks {
		if chunks[c].Value, err = b.store.Encode(chunks[c].Records); err != nil {
			return fmt.Errorf("encode %d records to spool for sink %s: %w", len(chunks[c].Records), l.Name, err)
		}
	}
	return l.Apply(s, b.states[l.Name], &b.spools)
}

// change changes the state of one sink, of which nothing is on its way, and saves that.
func (b *Books) change(name string, do func(state *checkpoint.SinkState) error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	state := b.states[name]
	if err := do(state); err != nil {
		return err
	}
	return b.write([]*checkpoint.SinkState{state}, checkpoint.Spools{})
}

// mark is where the sink goes on from.
func (b *Books) mark(name string) sink.Mark {
	b.mu.Lock()
	defer b.mu.Unlock()
	return sink.Mark(b.states[name].Mark)
}

// given are the places up to which the sink was given everything, by resource.
func (b *Books) given(name string) map[string]checkpoint.Places {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.states[name].Given().Places
}

// giveUpDisk removes what is on disk for the sink.
func (b *Books) giveUpDisk(name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.store.GiveUpDisk(b.states[name])
}

// foldedAtOnce is how many ids of a log are folded before that is saved (I6).
const foldedAtOnce = 1024

// folding folds the ids that a log holds into what is saved of its sink.
type folding struct {
	books *Books
	name  string
	ours  func(id *change.ID) (bool, error)
	items []checkpoint.Item
	count int
	err   error
}

// take takes the next id, and says whether it says anything of what its sink has.
func (f *folding) take(text string) (says bool) {
	f.count++
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
		if f.err = f.books.images.forget(&item); f.err != nil {
			return false
		}
	}
	if f.items = append(f.items, item); len(f.items) >= foldedAtOnce {
		f.flush()
	}
	return true
}

// flush saves what was folded.
func (f *folding) flush() {
	if f.err != nil || len(f.items) == 0 {
		return
	}
	f.err = f.books.change(f.name, func(state *checkpoint.SinkState) error {
		for i := range f.items {
			if err := state.Found(&f.items[i]); err != nil {
				return err
			}
		}
		return nil
	})
	f.items = f.items[:0]
}

// end returns what kept ids from being folded.
func (f *folding) end() error {
	f.flush()
	return f.err
}

// recall notes that the log of the sink has lost records. Where it can be read whole, what is saved of the sink is only
// what the log will say, and nothing is on disk for it.
func (b *Books) recall(name string, whole bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.store.Recall(b.states[name], whole)
}
