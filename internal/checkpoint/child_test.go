package checkpoint

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// child starts the test binary as another process that works on the directory.
func child(t *testing.T, mode, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "CHECKPOINT_CHILD="+mode, "CHECKPOINT_DIR="+dir)
	return cmd
}

// runChild is the child's main function; it returns the exit code.
func runChild(mode, dir string) int {
	var err error
	switch mode {
	case "batches":
		err = commitForEver(dir)
	case "hold":
		err = holdOpen(dir)
	case "fatal":
		err = failLog(dir)
	default:
		err = fmt.Errorf("unknown mode %q", mode)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	return 0
}

// commitForEver continues the numbered batches, and prints each number when its commit has returned.
func commitForEver(dir string) error {
	s, err := Open(context.Background(), dir, Options{Logger: quiet()})
	if err != nil {
		return err
	}
	n, err := wholeBatch(s)
	for err == nil {
		n++
		batch := numbered(n)
		if err = spoolNumbered(s, &batch, n); err != nil {
			return err
		}
		if err = s.Commit(batch); err == nil {
			_, err = fmt.Println(n)
		}
	}
	return err
}

// holdOpen owns the directory until standard input ends.
func holdOpen(dir string) error {
	s, err := Open(context.Background(), dir, Options{Logger: quiet()})
	if err != nil {
		return err
	}
	fmt.Println("open")
	if _, err := io.Copy(io.Discard, bufio.NewReader(os.Stdin)); err != nil {
		return err
	}
	return s.Close()
}

// failLog commits to a disk whose writes to Pebble's log fail.
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
	return s.Commit(numbered(1))
}

// objects is how many objects a numbered batch updates: enough that Pebble flushes and compacts every few batches.
const objects = 300

// numbered is a batch of which every part says n: the position of two streams, a mark, each object of one inventory,
// one object that is there in odd batches only, and in the other inventory one new object, so that a batch that is lost
// from the middle is missed.
func numbered(n int) Batch {
	version := strconv.Itoa(n)
	var records []*change.Record
	for i := range objects {
		records = append(records, object(change.Updated, "web-"+strconv.Itoa(i), "6ba7b810-9dad-11d1-80b4-00c04fd430c8", version))
	}
	records[0] = kept(change.Updated, "web-0", records[0].UID, version)
	op := change.Deleted
	if n%2 == 1 {
		op = change.Added
	}
	secret := object(change.Added, "batch-"+version, "u", version)
	secret.Stream = secrets
	records = append(records, object(op, "flip", "u", version), secret)
	return Batch{Records: records, Marks: map[string]sink.Mark{"out": sink.Mark(version)}}
}

// wholeBatch is the number of the batch that the state holds, 0 for none, and an error if it holds parts of several.
func wholeBatch(s *Store) (int, error) {
	mark, found, err := s.Mark("out")
	if err != nil {
		return 0, err
	}
	n := 0
	if found {
		if n, err = strconv.Atoi(string(mark)); err != nil {
			return 0, err
		}
	}
	for _, stream := range []string{"pods", "shop/secrets"} {
		position, known, err := s.Position(stream)
		if err != nil {
			return 0, err
		}
		if known != found || known && position.ResourceVersion != string(mark) {
			return 0, fmt.Errorf("the mark says %q, the position of %s %+v", mark, stream, position)
		}
	}
	return n, errors.Join(wholeInventory(s, n), wholeSpool(s, n))
}

// spooledBack is how many batches back the spool reaches.
const spooledBack = 5

// spoolNumbered adds to the batch a chunk that says n, and takes the oldest away.
func spoolNumbered(s *Store, b *Batch, n int) error {
	spool, err := s.Spool("out")
	if err != nil {
		return err
	}
	value, err := s.Encode([]*change.Record{object(change.Updated, "spooled", "u", strconv.Itoa(n))})
	if err != nil {
		return err
	}
	if n > spooledBack {
		if _, err := s.ReadSpool("out", &spool, 1, 1); err != nil {
			return err
		}
	}
	main := &spool[fifo.Main]
	b.Chunks = map[string][]fifo.Chunk{"out": {{Part: fifo.Main, Number: main.Next, Value: value}}}
	main.Next++
	main.Bytes += int64(len(value))
	main.Records++
	b.Spools = map[string]fifo.Spool{"out": spool}
	return nil
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

func wholeInventory(s *Store, n int) error {
	count := 0
	for entry, err := range s.Scan("pods", "") {
		if err != nil {
			return err
		}
		if entry.ResourceVersion != strconv.Itoa(n) {
			return fmt.Errorf("the mark says %d, the inventory %+v", n, entry)
		}
		image, found, err := s.Object("pods", entry.Key)
		if want := `{"version":"` + strconv.Itoa(n) + `"}`; err != nil || found != (entry.Key.Name == "web-0") || found && string(image.Object) != want {
			return fmt.Errorf("the mark says %d, what is kept of %s %s (%t, %w)", n, entry.Key, image.Object, found, err)
		}
		count++
	}
	if want := min(n, 1)*objects + n%2; count != want {
		return fmt.Errorf("batch %d left %d objects, want %d", n, count, want)
	}
	if count, err := s.Count("shop/secrets"); err != nil || count != n {
		return errors.Join(err, fmt.Errorf("of %d batches the objects of %d are there", n, count))
	}
	return nil
}
