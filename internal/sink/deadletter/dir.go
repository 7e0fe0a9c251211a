package deadletter

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint/disk"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Query says which letters of a directory with one of each sink in it are meant.
type Query struct {
	Dir  string
	Sink string   // "" is all
	IDs  []string // none is all
}

// Heads yields the letters without value and object, those of each sink from the oldest on.
func (q *Query) Heads() iter.Seq2[*Letter, error] {
	return func(yield func(*Letter, error) bool) {
		sinks, err := Sinks(q.Dir)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, name := range sinks {
			if q.Sink != "" && q.Sink != name {
				continue
			}
			for letter, err := range New(Options{Dir: filepath.Join(q.Dir, name), Sink: name}).All() {
				if err == nil && len(q.IDs) > 0 && !slices.Contains(q.IDs, letter.ID) {
					continue
				}
				if !yield(letter, err) {
					return
				}
			}
		}
	}
}

// Whole yields the letters as Heads does, with all that is in their files. One that is sent again meanwhile is left
// out.
func (q *Query) Whole() iter.Seq2[*Letter, error] {
	return func(yield func(*Letter, error) bool) {
		for letter, err := range q.Heads() {
			if err == nil {
				letter, err = New(Options{Dir: letter.dir}).Get(letter.ID)
			}
			if !errors.Is(err, errNoLetter) && !yield(letter, err) {
				return
			}
		}
	}
}

// DirOf is where the dead letters of all sinks are, unless the configuration says otherwise.
func DirOf(stateDir string) string { return filepath.Join(stateDir, "deadletters") }

// Quoted lists ids for a message.
func Quoted(ids []string) string {
	all := make([]string, len(ids))
	for i, name := range ids {
		all[i] = strconv.Quote(name)
	}
	return strings.Join(all, ", ")
}

// Read is the file of the name, nil where it is gone.
func (d *Dir) Read(name string) ([]byte, error) {
	content, err := os.ReadFile(filepath.Join(d.Dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return content, err
}

// Remove removes a file. Its durability is that of what is put back there.
func (d *Dir) Remove(name string) error {
	return d.failed("remove", name, remove(filepath.Join(d.Dir, name)))
}

// failed says what failed of which letter; nil is that nothing did.
func (d *Dir) failed(verb, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s dead letter %s in %s: %w", verb, name, d.Dir, err)
}

// PutBack makes a file durable that was copied. One that is there already stays as it is.
func (d *Dir) PutBack(name string, content []byte) error {
	path := filepath.Join(d.Dir, name)
	if !filepath.IsLocal(name) {
		return fmt.Errorf("restore dead letter %q: its name leads out of %s", name, d.Dir)
	}
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	err := disk.MakeDir(filepath.Join(d.Dir, claimedName)) // where it goes when it is sent again
	if err == nil {
		err = disk.WriteWhole(path, path+unfinished, content)
	}
	return d.failed("restore", name, err)
}

// Mend writes the letters anew of which due says by their heads that they may not stay as they are, after mend has
// changed each, which has value and object then. A crash leaves a letter as it was, or as it is to be. What cannot be
// mended is in the error, and the rest is mended. It is called before anything is kept, or sent again.
func (d *Dir) Mend(due func(head *Letter) bool, mend func(*Letter) error) error {
	names, err := d.Files()
	errs := []error{err}
	for _, name := range names {
		if err := d.mend(name, due, mend); err != nil {
			errs = append(errs, fmt.Errorf("mend dead letter %s: %w", filepath.Join(d.Dir, name), err))
		}
	}
	return errors.Join(errs...)
}

func (d *Dir) mend(name string, due func(*Letter) bool, mend func(*Letter) error) error {
	path := filepath.Join(d.Dir, name)
	head, err := readFile(path, false)
	if err != nil || !due(head) {
		return err
	}
	l, err := readFile(path, true)
	if err == nil {
		err = mend(l)
	}
	if err == nil {
		err = d.write(l, path)
	}
	if err == nil {
		d.changed(name)
	}
	return err
}

// unfinished is the end of the name of a letter that is being written.
const unfinished = ".new"

// Dir is the dead letters of one sink. Keep, Claim, Settle and Delivered are for the sink's own goroutine; the others
// may be called from any, and from other processes.
type Dir struct {
	Options
	used    int64               // of the bound, for Keep
	counted time.Time           // when that was; zero is never
	known   map[string]struct{} // for Delivered: ids of letters that may be there; nil is that nobody has looked
}

// recount is how often the letters are counted again where they have reached their bound: somebody may have deleted
// some.
const recount = 10 * time.Second

// fits says whether the letter has room, and counts it.
func (d *Dir) fits(l *Letter) (bool, error) {
	if d.Bytes == 0 {
		return true, nil
	}
	size := onDisk(int64(len(l.Value)+len(l.Object)+len(l.Before)) + block/2)
	if d.counted.IsZero() || d.used+size > d.Bytes && d.now().Sub(d.counted) >= recount {
		used, err := d.size()
		if err != nil {
			return false, err
		}
		d.used, d.counted = used, d.now()
	}
	if d.used+size > d.Bytes {
		return false, nil
	}
	d.used += size
	return true, nil
}

// New returns the directory, and makes nothing.
func New(o Options) *Dir {
	o.floor, o.usage, o.now = minFree, disk.UsageOf, time.Now
	return &Dir{Options: o}
}

func (d *Dir) file(id string) string    { return filepath.Join(d.Dir, id+suffix) }
func (d *Dir) claimed(id string) string { return filepath.Join(d.Dir, claimedName, id+suffix) }

// Keep makes the letter of the record durable and returns its id, or "" where the letters have reached their bound. A
// letter that is there already is left as it is. An error means that nothing was kept, and that it is worth another
// attempt: the volume is full, or cannot be written to.
func (d *Dir) Keep(rec *change.Record, msg *sink.Message, rejected *sink.RejectedError) (id string, err error) {
	l := newLetter(&d.Options, rec, msg, rejected)
	if kept, err := d.keep(l); err != nil || !kept {
		return "", d.failed("keep", l.ID, err)
	}
	d.changed(l.ID + suffix)
	if d.known != nil {
		d.known[l.ID] = struct{}{}
	}
	return l.ID, nil
}

func (d *Dir) keep(l *Letter) (kept bool, err error) {
	if err := disk.MakeDir(filepath.Join(d.Dir, claimedName)); err != nil {
		return false, err
	}
	if _, err := os.Stat(d.file(l.ID)); err == nil {
		return true, disk.SyncDir(d.Dir) // whoever wrote it may have been killed before this
	} else if !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if fits, err := d.fits(l); err != nil || !fits {
		return false, err
	}
	return true, d.write(l, d.file(l.ID))
}

// Delivered removes the letter of the state of an object that the record tells, which the sink has got whole, and
// returns its id, "" where there is none: the limit was raised, and a snapshot told the state again, or a restart.
func (d *Dir) Delivered(rec *change.Record) (id string, err error) {
	if d.known == nil {
		names, err := letterNames(d.Dir)
		if err != nil {
			return "", err
		}
		d.known = make(map[string]struct{}, len(names))
		for _, name := range names {
			d.known[strings.TrimSuffix(name, suffix)] = struct{}{}
		}
	}
	if len(d.known) == 0 { // nearly always
		return "", nil
	}
	id = idOf(rec, d.ClusterUID)
	if _, there := d.known[id]; !there {
		return "", nil
	}
	err = os.Remove(d.file(id))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return id, err // the next delivery of the state tries again
	}
	delete(d.known, id)
	if err != nil { // somebody deleted it
		return "", nil
	}
	d.changed(id + suffix)
	return id, disk.SyncDir(d.Dir)
}

// Claim notes durably that the letter is on its way to the sink, so that Settle can find out after a crash what became
// of it. It is false where there is no such letter. To claim twice is to claim once.
func (d *Dir) Claim(id string) (found bool, err error) {
	if _, err := os.Stat(d.claimed(id)); err == nil {
		return true, nil
	}
	err = os.Rename(d.file(id), d.claimed(id))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = d.sync()
	}
	if err != nil {
		return false, d.failed("claim", id, err)
	}
	d.changed(filepath.Join(claimedName, id+suffix), id+suffix)
	return true, nil
}

// Settle begins to find out which claimed letters the sink has: held is told ids of messages that it holds, and end
// removes the letters whose events are among them, and gives the others back.
func (d *Dir) Settle() (held func(id string), end func() error, err error) {
	entries, err := os.ReadDir(filepath.Join(d.Dir, claimedName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("settle claimed dead letters in %s: %w", d.Dir, err)
	}
	delivered := map[string]bool{} // by event
	events := make([]string, len(entries))
	for i, entry := range entries {
		// One that is damaged is given back: whoever reads it is told.
		if l, err := readFile(filepath.Join(d.Dir, claimedName, entry.Name()), false); err == nil {
			events[i], delivered[l.Event] = l.Event, false
		}
	}
	held = func(id string) {
		if _, claimed := delivered[id]; claimed {
			delivered[id] = true
		}
	}
	end = func() (err error) {
		for i := 0; err == nil && i < len(entries); i++ {
			path := filepath.Join(d.Dir, claimedName, entries[i].Name())
			id, whole := strings.CutSuffix(entries[i].Name(), suffix)
			if !whole || delivered[events[i]] { // or a crash left it unfinished
				err = remove(path)
			} else {
				err = os.Rename(path, d.file(id))
			}
		}
		if len(entries) > 0 {
			err = errors.Join(err, d.sync())
		}
		for _, entry := range entries {
			d.changed(entry.Name(), filepath.Join(claimedName, entry.Name()))
		}
		if err != nil {
			err = fmt.Errorf("settle claimed dead letters in %s: %w", d.Dir, err)
		}
		return err
	}
	return held, end, nil
}

// sync makes the names in both directories durable.
func (d *Dir) sync() error {
	return errors.Join(disk.SyncDir(filepath.Join(d.Dir, claimedName)), disk.SyncDir(d.Dir))
}

// errNoLetter says that there is no letter of that id: it was sent again, or somebody deleted it.
var errNoLetter = errors.New("there is no such dead letter: it was sent again, or deleted")

// Get reads one letter whole. It returns errNoLetter where there is none.
func (d *Dir) Get(id string) (*Letter, error) {
	if filepath.Base(id) != id {
		return nil, errNoLetter
	}
	l, err := readFile(d.file(id), true)
	if errors.Is(err, fs.ErrNotExist) {
		l, err = readFile(d.claimed(id), true)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoLetter
	}
	return l, err
}

// All yields the letters, the oldest first, without value and object. One that cannot be read is an error, and the
// rest follows.
func (d *Dir) All() iter.Seq2[*Letter, error] {
	return func(yield func(*Letter, error) bool) {
		var letters []*Letter
		names, err := d.Files()
		if err != nil && !yield(nil, err) {
			return
		}
		for _, name := range names {
			l, err := readFile(filepath.Join(d.Dir, name), false)
			switch {
			case errors.Is(err, fs.ErrNotExist): // sent again meanwhile
			case err == nil:
				l.dir = d.Dir
				letters = append(letters, l)
			case !yield(nil, err):
				return
			}
		}
		slices.SortStableFunc(letters, func(a, b *Letter) int { return a.Time.Compare(b.Time) })
		for _, l := range letters {
			if !yield(l, nil) {
				return
			}
		}
	}
}

// Count is how many letters there are.
func (d *Dir) Count() (int, error) {
	names, err := letterNames(d.Dir)
	return len(names), err
}

// readFile reads a letter, with value and object where whole is set.
func readFile(path string, whole bool) (*Letter, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read dead letter: %w", err)
	}
	defer f.Close()
	r := bufio.NewReader(f)
	l, err := readHead(r)
	if err == nil && whole {
		err = l.readBody(r)
	}
	if err != nil {
		return nil, fmt.Errorf("read dead letter %s: it is damaged: %w: delete the file, or restore it from a copy", path, err)
	}
	return l, nil
}

// Sinks are the names of the sinks that have letters, or had some, in a directory with one of each sink.
func Sinks(dir string) ([]string, error) {
	return namesIn(dir, func(entry fs.DirEntry) bool { return entry.IsDir() })
}

func (d *Dir) changed(names ...string) {
	if d.Changed == nil {
		return
	}
	for _, name := range names {
		d.Changed(name)
	}
}

// write makes the letter durable at the path.
func (d *Dir) write(l *Letter, path string) error {
	line, body, err := l.encode()
	if err != nil {
		return err
	}
	usage, err := d.usage(d.Dir)
	if err != nil {
		return fmt.Errorf("read the volume's free space: %w", err)
	}
	size := len(line) + len(l.Value) + len(l.Object) + len(l.Before)
	if err := usage.Needs(d.floor+uint64(size), "the sink continues when there is space"); err != nil {
		return err
	}
	return disk.WriteWhole(path, d.claimed(l.ID)+unfinished, append([][]byte{line}, body...)...)
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
