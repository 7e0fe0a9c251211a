package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// recordedFS notes what is done to a file system, in order.
type recordedFS struct {
	vfs.FS

	mu    sync.Mutex // guards the following
	ops   []diskOp
	files map[string]int    // by path: the number of the file that has the name now
	count int               // of the files
	base  map[string]string // what was there at the beginning, by path
	named map[string]int    // files at the beginning
}

// diskOp is one change of a disk. A name is durable when its directory was synced, and data when its file was.
type diskOp struct {
	kind   diskOpKind
	file   int
	path   string // of a name, or of a directory that is synced
	from   string // of a rename
	offset int64
	data   string
}

func (o diskOp) isName() bool { return o.kind == named || o.kind == unnamed || o.kind == renamed }

type diskOpKind string

const (
	named     diskOpKind = "name"
	unnamed   diskOpKind = "remove"
	renamed   diskOpKind = "rename"
	written   diskOpKind = "write"
	synced    diskOpKind = "sync"
	dirSynced diskOpKind = "sync of a directory"
)

// begin forgets what was done before: all of that is durable.
func (r *recordedFS) begin(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops, r.base, r.named = nil, contents(t, r.FS, "state"), maps.Clone(r.files)
}

// contents are all files below the directory.
func contents(t *testing.T, fs vfs.FS, dir string) map[string]string {
	t.Helper()
	names, err := fs.List(dir)
	must(t, err)
	all := map[string]string{}
	for _, name := range names {
		path := fs.PathJoin(dir, name)
		info, err := fs.Stat(path)
		must(t, err)
		if info.IsDir() {
			maps.Copy(all, contents(t, fs, path))
			continue
		}
		f, err := fs.Open(path)
		must(t, err)
		text, err := io.ReadAll(f)
		must(t, err)
		must(t, f.Close())
		all[path] = string(text)
	}
	return all
}

// do does something, and notes it where it was done.
func (r *recordedFS) do(what func() error, op diskOp) (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err = what(); err != nil {
		return err
	}
	switch op.kind {
	case named:
		r.count++
		op.file, r.files[op.path] = r.count, r.count
	case renamed:
		op.file, r.files[op.path] = r.files[op.from], r.files[op.from]
		delete(r.files, op.from)
	case unnamed:
		delete(r.files, op.path)
	}
	r.ops = append(r.ops, op)
	return nil
}

// at is how much was done by now.
func (r *recordedFS) at() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.ops)
}

func (r *recordedFS) Create(name string, category vfs.DiskWriteCategory) (file vfs.File, err error) {
	err = r.do(func() error { file, err = r.FS.Create(name, category); return err }, diskOp{kind: named, path: name})
	return r.wrap(file, name), err
}

func (r *recordedFS) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (file vfs.File, err error) {
	err = r.do(func() error { file, err = r.FS.ReuseForWrite(from, to, category); return err }, diskOp{kind: renamed, from: from, path: to})
	return r.wrap(file, to), err
}

func (r *recordedFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	file, err := r.FS.OpenReadWrite(name, category, opts...)
	return r.wrap(file, name), err
}

func (r *recordedFS) OpenDir(name string) (vfs.File, error) {
	dir, err := r.FS.OpenDir(name)
	return &recordedDir{dir, r, name}, err
}

func (r *recordedFS) Rename(from, to string) error {
	return r.do(func() error { return r.FS.Rename(from, to) }, diskOp{kind: renamed, from: from, path: to})
}

func (r *recordedFS) Remove(name string) error {
	return r.do(func() error { return r.FS.Remove(name) }, diskOp{kind: unnamed, path: name})
}

func (r *recordedFS) Link(string, string) error { return fmt.Errorf("nothing is linked here") }

func (r *recordedFS) Unwrap() vfs.FS { return r.FS }

func (r *recordedFS) wrap(file vfs.File, name string) vfs.File {
	if file == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return &recordedFile{File: file, fs: r, number: r.files[name]}
}

// recordedDir is an open directory.
type recordedDir struct {
	vfs.File
	fs   *recordedFS
	name string
}

func (d *recordedDir) Sync() error {
	return d.fs.do(d.File.Sync, diskOp{kind: dirSynced, path: d.name})
}

// recordedFile is one that is written from its beginning.
type recordedFile struct {
	vfs.File
	fs     *recordedFS
	number int
	offset int64
}

func (f *recordedFile) Write(data []byte) (n int, err error) {
	err = f.fs.do(func() error { n, err = f.File.Write(data); return err }, diskOp{kind: written, file: f.number, offset: f.offset, data: string(data)})
	f.offset += int64(n)
	return n, err
}

func (f *recordedFile) WriteAt(data []byte, at int64) (n int, err error) {
	return n, f.fs.do(func() error { n, err = f.File.WriteAt(data, at); return err }, diskOp{kind: written, file: f.number, offset: at, data: string(data)})
}

func (f *recordedFile) Sync() error {
	return f.fs.do(f.File.Sync, diskOp{kind: synced, file: f.number})
}

func (f *recordedFile) SyncData() error { return f.Sync() }

// SyncTo makes nothing durable, as it may.
func (f *recordedFile) SyncTo(int64) (bool, error) { return false, nil }

// left calls each with every disk that a crash may leave behind the first so many changes: what is durable, a beginning
// of the names that are not, and any part of the data. Where that is much, it is each beginning of it, all but one
// change, and one alone. POSIX lets names come in another order, too; the file systems that we know do not, and Pebble
// does not survive it.
func (r *recordedFS) left(done int, each func(disk map[string]string)) {
	r.mu.Lock()
	ops := slices.Clone(r.ops[:done])
	r.mu.Unlock()
	durable := make([]bool, len(ops))
	var names, data []int // that are not durable
	for at, op := range ops {
		for was := range at {
			durable[was] = durable[was] || op.kind == synced && ops[was].kind == written && ops[was].file == op.file ||
				op.kind == dirSynced && ops[was].isName() && r.PathDir(ops[was].path) == op.path
		}
	}
	for at, op := range ops {
		switch {
		case durable[at]:
		case op.isName():
			names = append(names, at)
		case op.kind == written:
			data = append(data, at)
		}
	}
	with := func(firstNames int, has func(n int) bool) {
		kept := slices.Clone(durable)
		for n, at := range names {
			kept[at] = n < firstNames
		}
		for n, at := range data {
			kept[at] = has(n)
		}
		each(r.disk(ops, kept))
	}
	for first := range len(names) + 1 {
		if len(data) <= 5 {
			for subset := range 1 << len(data) {
				with(first, func(n int) bool { return subset>>n&1 == 1 })
			}
			continue
		}
		for some := range len(data) + 1 {
			with(first, func(n int) bool { return n < some })
			with(first, func(n int) bool { return n != some })
			with(first, func(n int) bool { return n == some })
		}
	}
}

// disk is what is there when the kept ones of the changes took place.
func (r *recordedFS) disk(ops []diskOp, kept []bool) map[string]string {
	names, data := maps.Clone(r.named), map[int][]byte{}
	for path, text := range r.base {
		data[names[path]] = []byte(text)
	}
	for at, op := range ops {
		switch {
		case !kept[at]:
		case op.kind == named:
			names[op.path] = op.file
		case op.kind == renamed:
			delete(names, op.from)
			names[op.path] = op.file
		case op.kind == unnamed:
			delete(names, op.path)
		case op.kind == written:
			end := int(op.offset) + len(op.data)
			if grown := end - len(data[op.file]); grown > 0 {
				data[op.file] = append(data[op.file], make([]byte, grown)...)
			}
			copy(data[op.file][op.offset:], op.data)
		}
	}
	disk := map[string]string{}
	for path, file := range names {
		disk[path] = string(data[file])
	}
	return disk
}

// each opens every disk that a crash may leave while something is done. check is told how much had been done then.
func (r *recordedFS) eachDisk(t *testing.T, check func(done int, disk vfs.FS)) {
	t.Helper()
	last, disks := map[string]bool{}, 0
	for done := range r.at() + 1 {
		now := map[string]bool{}
		r.left(done, func(disk map[string]string) {
			form := fmt.Sprint(disk) // maps are printed in order
			if now[form] || last[form] {
				now[form] = true
				return
			}
			now[form] = true
			disks++
			fs := vfs.NewMem()
			must(t, fs.MkdirAll("state", 0o700))
			for path, text := range disk {
				must(t, fs.MkdirAll(fs.PathDir(path), 0o700))
				f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
				must(t, err)
				_, err = io.WriteString(f, text)
				must(t, errors.Join(err, f.Sync(), f.Close()))
			}
			check(done, fs)
		})
		last = now
	}
	t.Logf("%d changes of the disk, %d disks that a crash may leave", r.at(), disks)
	if disks < 50 {
		t.Errorf("only %d disks were looked at", disks)
	}
}

func newRecordedFS() *recordedFS { return &recordedFS{FS: vfs.NewMem(), files: map[string]int{}} }

// TestI5EveryCrashOfACommitLeavesAWholeBatch: of some batches with what goes to disk for a sink, through which Pebble
// changes its own files, every prefix of what is done to the disk, and every order that POSIX allows between two syncs,
// leaves one batch whole, and none that was acknowledged is gone.
func TestI5EveryCrashOfACommitLeavesAWholeBatch(t *testing.T) {
	fs := newRecordedFS()
	opts := inMemory(fs)
	opts.memTable = 512 << 10 // several batches are in Pebble's log before it makes a table of them
	s, err := Open(t.Context(), "state", opts)
	must(t, err)
	commit := func(n int) {
		spools, err := spoolNumbered(s, n)
		must(t, err)
		must(t, commitWith(s, n, spools))
	}
	first, batches := 4, 20
	for n := range first {
		commit(n + 1)
	}
	fs.begin(t)
	acked := map[int]int{} // by batch: how much was done
	for n := first + 1; n <= first+batches; n++ {
		commit(n)
		acked[n] = fs.at()
	}
	must(t, s.Close())
	fs.eachDisk(t, func(done int, disk vfs.FS) {
		s, err := Open(t.Context(), "state", inMemory(disk))
		if err != nil {
			t.Fatalf("after %d changes of the disk: %v", done, err)
		}
		n, err := wholeBatch(s)
		next, is := acked[n+1]
		if err != nil || n < first || is && next <= done {
			t.Fatalf("after %d changes of the disk batch %d is there, of those that were acknowledged then %v: %v", done, n, acked, err)
		}
		must(t, s.Close())
	})
}
