package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
)

// failLog is the main function of the test binary as another process: it commits to a disk whose writes to Pebble's log
// fail.
func failLog(dir string) error {
	var broken errorfs.Toggle
	broken.Injector = errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && vfs.Default.PathBase(op.Path)[0] == '0' {
			return syscall.EIO
		}
		return nil
	})
	s, err := Open(context.Background(), dir, Options{
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)), fs: errorfs.Wrap(vfs.Default, &broken),
	})
	if err != nil {
		return err
	}
	broken.On()
	return commitNumbered(s, 1)
}

// objects is how many objects a numbered batch updates: enough that Pebble flushes and compacts every few batches.
const objects = 300

// told is that a sink was told of an object, and has everything up to it.
func told(resource, name, uid string, version int) Item {
	at := Point{1, strconv.Itoa(version)}
	return Item{Kind: Told, Resource: resource, Scope: Others, At: at, Given: at, Key: change.Key{Namespace: "shop", Name: name}, UID: uid}
}

// save loads the sink, tells it of the items and saves that.
func save(s *Store, sinkName, mark string, items ...Item) error {
	state, err := s.LoadSink(sinkName)
	if err != nil {
		return err
	}
	for i := range items {
		if err := state.Acked(&items[i]); err != nil {
			return err
		}
	}
	state.Mark = mark
	return s.SaveSinks([]*SinkState{state}, Spools{}, nil)
}

// commitNumbered saves the batch n, of which every part says n: the position of two resources, a mark, each object of
// one resource, one object that is there in odd batches only, and of the other resource one new object, so that a batch
// that is lost from the middle is missed.
func commitNumbered(s *Store, n int) error { return commitWith(s, n, Spools{}) }

func commitWith(s *Store, n int, spools Spools) error {
	state, err := s.LoadSink("out")
	if err != nil {
		return err
	}
	version := strconv.Itoa(n)
	var items []Item
	for _, resource := range []string{"pods", "secrets"} {
		items = append(items, Item{Kind: Begin, Resource: resource, Scope: Others, At: Point{1, version}})
	}
	for i := range objects {
		items = append(items, told("pods", "web-"+strconv.Itoa(i), "6ba7b810-9dad-11d1-80b4-00c04fd430c8", n))
	}
	flip := told("pods", "flip", "u", n)
	flip.Gone = n%2 == 0
	items = append(items, flip, told("secrets", "batch-"+version, "u", n))
	for i := range items {
		if err := state.Acked(&items[i]); err != nil {
			return err
		}
	}
	state.Mark = version
	return s.SaveSinks([]*SinkState{state}, spools, &Keeping{[]KeptObject{kept("web-0", version)}, []string{"out"}})
}

// wholeBatch is the number of the batch that the state holds, 0 for none, and an error if it holds parts of several.
func wholeBatch(s *Store) (int, error) {
	state, err := s.LoadSink("out")
	if err != nil {
		return 0, err
	}
	n := 0
	if state.Mark != "" {
		if n, err = strconv.Atoi(state.Mark); err != nil {
			return 0, err
		}
	}
	for _, resource := range []string{"pods", "secrets"} {
		if place, known := state.Places[resource].Of(Others); known != (n > 0) || place.At.Version != state.Mark {
			return 0, fmt.Errorf("the mark says %q, the position of %s %+v", state.Mark, resource, place)
		}
	}
	return n, errors.Join(wholeRows(state, s, n), wholeSpool(s, n))
}

// spooledBack is how many batches back the spool reaches.
const spooledBack = 5

// spoolNumbered is a chunk that says n, and the extent without the oldest one.
func spoolNumbered(s *Store, n int) (spools Spools, err error) {
	spool, err := s.Spool("out")
	if err != nil {
		return spools, err
	}
	value, err := s.Encode([]*change.Record{object(change.Updated, "spooled", "u", strconv.Itoa(n))})
	if err != nil {
		return spools, err
	}
	if n > spooledBack {
		if _, err := s.ReadSpool("out", &spool, 1, 1); err != nil {
			return spools, err
		}
	}
	main := &spool[fifo.Main]
	chunks := []fifo.Chunk{{Part: fifo.Main, Number: main.Next, Value: value}}
	main.Next++
	main.Bytes += int64(len(value))
	main.Records++
	return Spools{"out": {chunks, spool}}, nil
}

// wholeSpool reads what the last batches left, where they spooled.
func wholeSpool(s *Store, n int) error {
	spool, err := s.Spool("out")
	if err != nil || spool == (fifo.Spool{}) { // not every test spools
		return err
	}
	for i := max(1, n-spooledBack+1); i <= n; i++ {
		read, err := s.ReadSpool("out", &spool, 1, 1)
		if err != nil || len(read) != 1 || read[0].ResourceVersion != strconv.Itoa(i) {
			return errors.Join(err, fmt.Errorf("of %d batches the spool holds %v where batch %d is", n, read, i))
		}
	}
	if !spool.Empty() || spool.Bytes() != 0 || spool.Records() != 0 {
		return fmt.Errorf("an empty spool is %+v", spool)
	}
	return nil
}

func wholeRows(state *SinkState, s *Store, n int) error {
	count := 0
	for row, err := range state.Objects("pods", Others, "") {
		if err != nil {
			return err
		}
		if row.At.Version != strconv.Itoa(n) {
			return fmt.Errorf("the mark says %d, a row %+v", n, row)
		}
		images, err := s.Images("pods", row.Of.Key)
		want, found := `{"version":"`+strconv.Itoa(n)+`"}`, len(images) > 0
		if err != nil || found != (row.Of.Key.Name == "web-0") || found && string(images[0].Object) != want {
			return fmt.Errorf("the mark says %d, what is kept of %s is %s (%w)", n, row.Of.Key, images, err)
		}
		count++
	}
	if want := min(n, 1)*objects + n%2; count != want {
		return fmt.Errorf("batch %d left %d objects, want %d", n, count, want)
	}
	if count, err := s.CountRows("out", "secrets", Others); err != nil || count != n {
		return errors.Join(err, fmt.Errorf("of %d batches the objects of %d are there", n, count))
	}
	return nil
}
