package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Store is the saved state of one exporter: one directory, owned by one process at a time (I10). All methods but Close
// may be called from several goroutines; none may be called after Close, and scans must have ended before it.
//
// Its errors are a *disk.FullError where the volume is full, in which case the same call works later, a *DamagedError
// where the files are not what was written, and otherwise the operating system's.
type Store struct {
	dir    string
	opts   Options
	lock   io.Closer
	space  *space
	gate   *gate
	db     *pebble.DB
	damage atomic.Pointer[DamagedError] // found in the background

	background context.Context // of what Pebble does on its own account: Open's, without its end
	codec      codec

	mu        sync.Mutex // held by one writer at a time, and by Close
	closed    bool
	reclaimed map[string]*reclaimed // by sink
	absent    map[string][]Absence  // by stream
}

// Open opens the state in the directory and creates what is missing, unless it is opened read-only. It never resets a
// state: one that is damaged, newer, or in use is refused with a *DamagedError, *NewerError or *InUseError, a full
// volume with a *disk.FullError, and a missing state that is opened read-only with ErrNoState.
//
// Open gives up when ctx ends; what is still under way then ends by itself, and releases the directory.
func Open(ctx context.Context, dir string, opts Options) (*Store, error) {
	opts = opts.withDefaults()
	lock, err := opts.claim(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, opts: opts, lock: lock, gate: &gate{}, background: context.WithoutCancel(ctx)}
	s.space = &space{dir: dir, floor: opts.Floor, usage: opts.usage, logger: opts.Logger, stop: make(chan struct{})}
	if err := s.openWithin(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// openWithin opens the database in a goroutine, since Pebble cannot be interrupted. Exactly one of the two sees to the
// outcome: the goroutine, once ctx has ended.
func (s *Store) openWithin(ctx context.Context) error {
	done := make(chan error)
	go func() {
		err := s.openDatabase()
		select {
		case done <- err:
		case <-ctx.Done():
			if err == nil {
				_ = s.db.Close() // nobody is left to hear of it
			}
			_ = s.lock.Close()
		}
	}()
	select {
	case err := <-done:
		if err != nil {
			return errors.Join(err, s.lock.Close())
		}
		return nil
	case <-ctx.Done():
		close(s.space.stop)
		return fmt.Errorf("open state %s: the disk did not answer in time: check the volume: %w", s.dir, context.Cause(ctx))
	}
}

func (s *Store) openDatabase() error {
	if !s.opts.ReadOnly {
		if err := s.space.check("open"); err != nil {
			return err
		}
	}
	if err := checkFiles(s.dir, s.opts); err != nil {
		return err
	}
	db, err := pebble.Open(s.dir, s.pebbleOptions())
	if err != nil {
		return openError(s.dir, err)
	}
	s.db = db
	if err := s.checkFormat(); err != nil {
		return errors.Join(err, db.Close())
	}
	if err := errors.Join(s.openSpools(), s.loadAbsences()); err != nil {
		return errors.Join(err, db.Close())
	}
	if err := s.mend(); err != nil {
		return errors.Join(err, db.Close())
	}
	s.gate.open()
	return nil
}

// Close releases the directory. Everything was durable before; where there is space, the log's end is moved into a
// table first, since only there damage can be told from a crash. A second call does nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	var err error
	if !s.opts.ReadOnly && s.space.check("close") == nil {
		err = s.db.Flush()
	}
	close(s.space.stop)
	// The lock goes last: a directory that Pebble still writes to must not be anybody else's (I10).
	if err = errors.Join(err, s.db.Close(), s.lock.Close()); err != nil {
		return fmt.Errorf("close state %s: %w", s.dir, err)
	}
	return nil
}

// Position is how far the stream is delivered, false where the state does not know the stream.
func (s *Store) Position(stream string) (change.Position, bool, error) {
	value, found, err := s.get(positionKey(stream))
	if err != nil || !found {
		return change.Position{}, false, err
	}
	position, err := parsePosition(value)
	if err != nil {
		return change.Position{}, false, s.badValue("the position of "+stream, err)
	}
	return position, true, nil
}

// Positions are those of all streams, by name.
func (s *Store) Positions() (map[string]change.Position, error) {
	positions := map[string]change.Position{}
	err := s.each([]byte{tablePosition}, func(key, value []byte) error {
		position, err := parsePosition(value)
		if err != nil {
			return s.badValue("the position of "+string(key[1:]), err)
		}
		positions[string(key[1:])] = position
		return nil
	})
	return positions, err
}

// Mark is the sink's saved mark, false for a sink that the state does not know.
func (s *Store) Mark(sinkName string) (sink.Mark, bool, error) {
	value, found, err := s.get(markKey(sinkName))
	return sink.Mark(value), found, err
}

// Marks are those of all sinks, by name.
func (s *Store) Marks() (map[string]sink.Mark, error) {
	marks := map[string]sink.Mark{}
	err := s.each([]byte{tableMark}, func(key, value []byte) error {
		marks[string(key[1:])] = sink.Mark(value)
		return nil
	})
	return marks, err
}

// Subscriptions are the streams that the sinks have been given, by sink and stream.
func (s *Store) Subscriptions() (map[Subscription]bool, error) {
	subscriptions := map[Subscription]bool{}
	err := s.each([]byte{tableSubscription}, func(key, _ []byte) error {
		subscription, ok := parseSubscription(key)
		if !ok {
			return s.badValue("a subscription", errValue)
		}
		subscriptions[subscription] = true
		return nil
	})
	return subscriptions, err
}

// Debts are the snapshots that are owed, sorted by sink and stream.
func (s *Store) Debts() ([]Debt, error) {
	var debts []Debt
	err := s.each([]byte{tableDebt}, func(key, value []byte) error {
		debt, ok := parseDebt(key)
		if !ok {
			return s.badValue("a debt", errValue)
		}
		var err error
		if debt.Generation, debt.After, err = parseDebtValue(value); err != nil {
			return s.badValue("a debt", err)
		}
		debts = append(debts, debt)
		return nil
	})
	return debts, err
}

// view returns the key's value, which is the caller's until it closes the closer. Without a closer there is none.
func (s *Store) view(key []byte) (value []byte, closer io.Closer, err error) {
	value, closer, err = s.db.Get(key)
	switch {
	case errors.Is(err, pebble.ErrNotFound):
		return nil, nil, nil
	case err != nil:
		return nil, nil, s.failed("read", err)
	}
	return value, closer, nil
}

// get returns a copy of the key's value.
func (s *Store) get(key []byte) (value []byte, found bool, err error) {
	view, closer, err := s.view(key)
	if err != nil || closer == nil {
		return nil, false, err
	}
	value = append([]byte{}, view...)
	if err := closer.Close(); err != nil {
		return nil, false, s.failed("read", err)
	}
	return value, true, nil
}

// each visits the keys with the prefix, in order. Key and value are valid during the call only.
func (s *Store) each(prefix []byte, visit func(key, value []byte) error) error {
	iterator, err := s.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
	if err != nil {
		return s.failed("read", err)
	}
	for iterator.First(); iterator.Valid(); iterator.Next() {
		if err := visit(iterator.Key(), iterator.Value()); err != nil {
			return errors.Join(err, iterator.Close())
		}
	}
	if err := iterator.Close(); err != nil { // it repeats the error that ended the loop
		return s.failed("read", err)
	}
	return nil
}

func (s *Store) badValue(what string, err error) error {
	return &DamagedError{Op: "read", Dir: s.dir, Err: fmt.Errorf("%s: %w", what, err)}
}
