package checkpoint

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strconv"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
)

// inMemory are options for a state in memory.
func inMemory(fs vfs.FS) Options {
	opts := OnFS(fs)
	opts.Logger, opts.usage = quiet(), func(string) (vfs.DiskUsage, error) { return vfs.DiskUsage{AvailBytes: 1 << 40}, nil }
	return opts
}

// layered is the plain form of a state with two layers, and the state.
type layered struct {
	t        *testing.T
	fs       vfs.FS
	store    *Store
	journal  *folded
	state    *SinkState
	fold     Saved
	rows     rowsInMemory
	disk     *Saved // nil is that nothing is on disk
	diskRows rowsInMemory
	life     *history
	spool    fifo.Spool
	waiting  []Item // on disk
	full     bool   // the volume
}

// over are the rows of the disk above the others.
type over struct{ disk, under rowsInMemory }

func (o over) Row(of Object) (Row, error) {
	if row, is := o.disk[of]; is {
		return row, nil
	}
	return o.under[of], nil
}

func (o over) Put(of Object, row Row) error { return o.disk.Put(of, row) }

func (o over) Passed(string, string, Point, func(string) bool) error { return nil }

func newLayered(t *testing.T, seed int64) *layered {
	l := &layered{
		t: t, fs: vfs.NewMem(), journal: &folded{t: t, rows: map[string]string{}}, fold: Saved{Places: map[string]Places{}},
		rows: rowsInMemory{}, life: &history{r: rand.New(rand.NewSource(seed)), version: 10, at: 1},
	}
	l.open()
	return l
}

func (l *layered) open() {
	opts := inMemory(l.fs)
	opts.Journal = l.journal
	free := opts.usage
	opts.usage = func(dir string) (vfs.DiskUsage, error) {
		if l.full {
			return vfs.DiskUsage{TotalBytes: 1 << 40}, nil
		}
		return free(dir)
	}
	var err error
	l.store, err = Open(l.t.Context(), "state", opts)
	must(l.t, err)
	l.state, err = l.store.LoadSink("lake")
	must(l.t, err)
}

// tell tells the sink something: it is acknowledged, goes to disk, or comes from there.
func (l *layered) tell() {
	i := l.life.next()
	l.state.Merges = false
	switch what := l.life.r.Intn(6); {
	case what == 0, what < 3 && l.disk != nil:
		if l.disk == nil {
			disk := clonePlaces(l.fold)
			l.disk, l.diskRows = &disk, rowsInMemory{}
		}
		l.spool[fifo.Main].Next++
		l.spool[fifo.Main].Records++
		l.waiting = append(l.waiting, i)
		must(l.t, l.state.Spooled(&i))
		must(l.t, l.disk.Apply(&i, over{l.diskRows, l.rows}))
	case what == 3 && len(l.waiting) > 0:
		i, l.waiting = l.waiting[0], l.waiting[1:]
		must(l.t, l.state.Logged(&i))
		must(l.t, l.fold.Fold(&i, l.rows))
	default:
		take, tell := (*Saved).Fold, l.state.Acked
		l.state.Merges = l.life.version%3 != 0
		switch l.life.version % 3 {
		case 0:
			take = (*Saved).Apply
		case 1:
			if !l.state.waits {
				tell = l.state.Found
			}
		}
		must(l.t, tell(&i))
		if l.disk != nil {
			must(l.t, take(l.disk, &i, over{l.diskRows, l.rows}))
		}
		must(l.t, take(&l.fold, &i, l.rows))
	}
}

// save saves. Now and then nothing is on disk any more, or it is given up.
func (l *layered) save() {
	for resource := range l.fold.Places {
		must(l.t, l.fold.DropPassed(resource, l.rows))
		for _, layer := range l.state.layers() {
			layer.touched[resource] = struct{}{}
		}
	}
	must(l.t, l.state.DropPassed())
	switch l.life.r.Intn(5) {
	case 0:
		if l.disk != nil {
			l.spool[fifo.Main] = fifo.Extent{First: l.spool[fifo.Main].Next, Next: l.spool[fifo.Main].Next}
			for of, row := range l.diskRows {
				if row.At.After(l.rows[of].At) {
					must(l.t, l.rows.Put(of, row))
				}
			}
			maps.Copy(l.fold.Places, l.disk.Places)
			l.disk, l.diskRows, l.waiting = nil, nil, nil
		}
	case 1:
		if l.life.r.Intn(3) == 0 {
			l.full = true
			if err := l.store.GiveUpDisk(l.state); err == nil {
				l.t.Fatal("a full disk has taken it")
			}
			l.full = false
			l.compareGiven()
			must(l.t, l.store.GiveUpDisk(l.state))
			l.disk, l.diskRows, l.waiting, l.spool = nil, nil, nil, fifo.Spool{}
		}
	}
	l.fold.Mark = "m" + strconv.Itoa(l.life.version)
	l.state.Mark = l.fold.Mark
	l.state.Waits(!l.spool.Empty())
	must(l.t, l.store.SaveSinks([]*SinkState{l.state}, Spools{"lake": {Extent: l.spool}}, nil))
}

func placesText(s *Saved) (text string) {
	for _, resource := range slices.Sorted(maps.Keys(s.Places)) {
		if places := s.Places[resource]; len(places) > 0 {
			text += fmt.Sprintf("%s %v\n", resource, places)
		}
	}
	return text
}

// compare compares both layers, and what the journal has with the first.
func (l *layered) compare() {
	l.t.Helper()
	if l.state.Mark != l.fold.Mark {
		l.t.Fatalf("the mark is %q, want %q", l.state.Mark, l.fold.Mark)
	}
	if have, want := placesText(&l.state.Saved), placesText(&l.fold); have != want {
		l.t.Fatalf("the places are\n%s, want\n%s", have, want)
	}
	l.compareGiven()
	rows := over{under: l.rows}
	if l.disk != nil {
		rows.disk = l.diskRows
	}
	for _, all := range []rowsInMemory{rows.under, rows.disk} {
		for of := range all {
			want, _ := rows.Row(of)
			if have, err := l.state.SavedRow(of); have != want || err != nil {
				l.t.Fatalf("%v is %v (%v), want %v", of, have, err, want)
			}
		}
	}
	for _, resource := range []string{"pods", "pods.x", "deployments.apps"} {
		for _, namespace := range []string{Others, "z"} {
			compareObjects(l.t, l.state, l.rows, resource, namespace)
		}
	}
	logged := rowsOf(l.t, l.store)
	maps.DeleteFunc(logged, func(key, _ string) bool { return !isLogged([]byte(key)) })
	if !maps.Equal(l.journal.rows, logged) {
		l.t.Fatalf("the log has %q, want %q", l.journal.rows, logged)
	}
}

// compareGiven compares what the sink is given, with what is on disk.
func (l *layered) compareGiven() {
	l.t.Helper()
	given := &l.fold
	if l.disk != nil {
		given = l.disk
	}
	if have, want := placesText(l.state.Given()), placesText(given); have != want {
		l.t.Fatalf("the sink is given\n%s, want\n%s", have, want)
	}
}

// TestI1I5WhatIsOnDiskLiesOnWhatTheLogHas compares the layers with maps, over saves and restarts, until the sink is
// forgotten. The log of the state has the first layer alone.
func TestI1I5WhatIsOnDiskLiesOnWhatTheLogHas(t *testing.T) {
	merged := 0
	for seed := range int64(30) {
		t.Run(strconv.FormatInt(seed, 10), func(t *testing.T) {
			l := newLayered(t, seed)
			for range 400 {
				if l.tell(); l.life.r.Intn(8) > 0 {
					continue
				}
				was := l.disk != nil
				if l.save(); was && l.disk == nil {
					merged++
				}
				l.compare()
				if l.life.r.Intn(4) == 0 {
					must(t, l.store.Close())
					l.open()
					l.compare()
				}
			}
			must(t, l.store.Forget("lake"))
			must(t, l.store.Close())
			l.open()
			l.fold, l.rows, l.disk, l.diskRows = Saved{Places: map[string]Places{}}, rowsInMemory{}, nil, nil
			l.compare()
			must(t, l.store.Close())
		})
	}
	if merged < 200 {
		t.Errorf("the disk was empty %d times", merged)
	}
}

// TestI6TheDisksLayerIsMergedInPieces, and by the next process where this one is killed meanwhile.
func TestI6TheDisksLayerIsMergedInPieces(t *testing.T) {
	l := newLayered(t, 1)
	l.spool[fifo.Main] = fifo.Extent{Next: 1, Records: 1}
	objects := mergedAtOnce + 10
	for n := range objects {
		at := Point{1, strconv.Itoa(n + 1)}
		must(t, l.state.Spooled(&Item{
			Kind: Told, Resource: "pods", Scope: Others, At: at, Given: at, Key: change.Key{Name: strconv.Itoa(n)}, UID: "u",
		}))
	}
	save := func() {
		t.Helper()
		l.state.Waits(!l.spool.Empty())
		must(t, l.store.SaveSinks([]*SinkState{l.state}, Spools{"lake": {Extent: l.spool}}, nil))
	}
	save()
	l.spool[fifo.Main] = fifo.Extent{First: 1, Next: 1}
	if save(); !l.state.Merging() {
		t.Fatal("all of it was one piece")
	}
	must(t, l.store.Close())
	if l.open(); !l.state.Merging() {
		t.Fatal("the rest is forgotten")
	}
	if save(); l.state.Merging() {
		t.Fatal("it is not over")
	}
	n, err := l.store.CountRows("lake", "pods", Others)
	if must(t, err); n != objects {
		t.Errorf("%d objects, want %d", n, objects)
	}
	must(t, l.store.Close())
}
