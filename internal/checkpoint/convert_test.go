package checkpoint

import (
	"archive/zip"
	"errors"
	"maps"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
)

var (
	restoredAt   = change.NewEpoch("8f2c0000-uid", 1_700_000_000_000)
	earlierMarks = map[string]string{"a": "a-mark", "b": "b-mark"}
)

// writeEarlier makes a state of format 1 in which nothing is open, as the exporter of that format left it. more changes
// it.
func writeEarlier(t *testing.T, opts Options, more func(*Store)) {
	t.Helper()
	s, err := Open(t.Context(), "state", opts)
	must(t, err)
	must(t, s.SetCluster(Cluster{Name: "prod", UID: "8f2c0000-uid"}))
	_, err = s.RedactionKey()
	must(t, err)
	_, err = s.Met("8f2c0000-uid")
	must(t, err)
	for i := range 40 {
		put(t, s, earlierKey(tableInventory, "pods", "shop/web-"+strconv.Itoa(i)), string(appendEntry(nil, "uid-"+strconv.Itoa(i), strconv.Itoa(100+i))))
	}
	put(t, s, earlierKey(tableInventory, "shop/secrets", "shop/key"), string(appendEntry(nil, "s", "500")))
	setPosition(t, s, "pods", position{version: "139", epoch: "8f2c0000-uid", selector: "labels=app=x&fields="})
	setPosition(t, s, "shop/secrets", position{version: "510", complete: true, epoch: restoredAt})
	for sinkName, mark := range earlierMarks {
		put(t, s, string(keyOf(tableMark, sinkName)), mark)
		put(t, s, earlierKey(tableSubscription, sinkName, "pods"), "")
	}
	put(t, s, earlierKey(tableSubscription, "b", "shop/secrets"), "")
	must(t, s.KnowStreams([]change.Stream{*pods, *secrets}))
	must(t, s.Commit(Batch{
		PendingSnapshots: []PendingSnapshot{owe("a", "pods", change.Requested)}, Heard: map[string][]byte{"a": []byte("heard")},
	}))
	must(t, s.KeepObjects("pods", []byte("form")))
	put(t, s, string(objectKey("pods", kept("web-1", "101").Key)), "kept")
	must(t, s.Define("pods", 3))
	must(t, s.SetLogged([]byte("place")))
	if more != nil {
		more(s)
	}
	put(t, s, string(keyOf(tableFormat)), "1")
	must(t, s.Close())
}

// earlierKey is a key of format 1, of two names.
func earlierKey(table byte, first, second string) string {
	return string(table) + first + "\x00" + second
}

func put(t *testing.T, s *Store, key, value string) {
	t.Helper()
	must(t, s.db.Set([]byte(key), []byte(value), pebble.Sync))
}

func setPosition(t *testing.T, s *Store, stream string, p position) {
	t.Helper()
	complete := byte(0)
	if p.complete {
		complete = 1
	}
	put(t, s, string(tablePosition)+stream, string(append(appendText(appendText([]byte{complete}, p.version), p.epoch), p.selector...)))
}

// allRows are all rows of the directory.
func allRows(t *testing.T, opts Options) map[string]string {
	t.Helper()
	opts.ReadOnly, opts.Journal = true, nil
	d, err := newDatabase(t.Context(), "state", opts.withDefaults())
	must(t, err)
	must(t, d.open(t.Context(), func() error { return nil }))
	rows := map[string]string{}
	for table := range 0xfe {
		must(t, d.each([]byte{byte(table)}, func(key, value []byte) error {
			rows[string(key)] = string(value)
			return nil
		}))
	}
	must(t, d.Close())
	return rows
}

// TestI11AnEarlierStateIsConverted: each sink knows what it was told, where it stands, and of which history.
func TestI11AnEarlierStateIsConverted(t *testing.T) {
	opts := inMemory(vfs.NewMem())
	var key []byte
	writeEarlier(t, opts, func(s *Store) {
		var err error
		key, err = s.RedactionKey()
		must(t, err)
	})
	s, err := Open(t.Context(), "state", opts)
	must(t, err)
	podsAt := Place{At: Point{1, "138"}, High: Point{1, "139"}, Selection: "labels=app=x&fields="}
	secretsAt := Place{At: Point{1_700_000_000_000, "510"}, High: Point{1_700_000_000_000, "510"}}
	for name, want := range map[string]map[string]Places{
		"a": {"pods": {Others: podsAt}},
		"b": {"pods": {Others: podsAt}, "secrets": {"shop": secretsAt}},
	} {
		state, err := s.LoadSink(name)
		must(t, err)
		if state.Mark != earlierMarks[name] || !maps.EqualFunc(state.Places, want, maps.Equal[Places, Places]) {
			t.Errorf("sink %s is at %q %+v, want %+v", name, state.Mark, state.Places, want)
		}
		objects := 0
		for row, err := range state.Objects("pods", Others, "") {
			must(t, err)
			n := strings.TrimPrefix(row.Of.Key.Name, "web-")
			number, _ := strconv.Atoi(n)
			if want := (Row{At: Point{1, strconv.Itoa(100 + number)}, UID: "uid-" + n}); row.Row != want {
				t.Errorf("%v is %+v, want %+v", row.Of, row.Row, want)
			}
			objects++
		}
		if objects != 40 {
			t.Errorf("sink %s has %d pods", name, objects)
		}
		row, err := state.SavedRow(Object{"secrets", change.Key{Namespace: "shop", Name: "key"}})
		if want := (Row{At: Point{1_700_000_000_000, "500"}, UID: "s"}); err != nil || name == "b" && row != want || name == "a" && row.Known() {
			t.Errorf("sink %s has the secret %+v (%v)", name, row, err)
		}
	}
	cluster, _, err := s.Cluster()
	if must(t, err); cluster != (Cluster{Name: "prod", UID: "8f2c0000-uid"}) {
		t.Errorf("cluster %+v", cluster)
	}
	if now, err := s.RedactionKey(); err != nil || string(now) != string(key) {
		t.Errorf("another redaction key (%v)", err)
	}
	pending, err := s.PendingSnapshots()
	if must(t, err); len(pending) != 1 || pending[0].Reason != change.Requested {
		t.Errorf("pending snapshots %+v", pending)
	}
	if heard, err := s.Heard("a"); err != nil || string(heard) != "heard" {
		t.Errorf("heard %q (%v)", heard, err)
	}
	if generation, found, err := s.Defined("pods"); err != nil || !found || generation != 3 {
		t.Errorf("the definition is %d, %v (%v)", generation, found, err)
	}
	if of, found, err := s.Resource("shop/secrets"); err != nil || !found || of != *secrets {
		t.Errorf("the resource is %+v, %v (%v)", of, found, err)
	}
	for _, table := range append(sharedTables(), tableForm, tableObject) {
		if some, err := s.holds([]byte{table}); some || err != nil {
			t.Errorf("table %c is left (%v)", table, err)
		}
	}
	if place, err := s.TakeLogged([]byte("claim")); err != nil || place != nil {
		t.Errorf("the log of the state is said to have it: %q (%v)", place, err)
	}
	must(t, s.Close())
	if format := allRows(t, opts)[string(keyOf(tableFormat))]; format != "2" {
		t.Errorf("format %s", format)
	}
}

// TestAnEarlierStateWithSomethingOpenIsRefused, and stays as it is.
func TestAnEarlierStateWithSomethingOpenIsRefused(t *testing.T) {
	with := func(key, value string) func(*Store) { return func(s *Store) { put(t, s, key, value) } }
	at := func(p position) func(*Store) { return func(s *Store) { setPosition(t, s, "pods", p) } }
	carried := string(appendText(appendText(nil, "a-mark"), "before")) + "a frame of ids"
	for name, c := range map[string]struct {
		more func(*Store)
		open string
	}{
		"absence": {with(earlierKey(tableAbsent, "b", "pods"), "?"), "sink b misses changes of pods, unless that version forgets it with: exporter checkpoint forget-sink b"},
		"spool": {func(s *Store) {
			p := &spooler{t: t, s: s, sink: "b"}
			p.put(fifo.Main, &change.Record{Stream: pods, Op: change.Bookmark})
		}, "1 records for sink b are on disk"},
		"carried ids":   {with(string(tableCarried)+"a", carried), "the log of sink a is ahead of the state"},
		"replay base":   {with(earlierKey(tableReplayBase, "a", "pods"), "?"), "the log of sink a is still to be read"},
		"missed delete": {with(earlierKey(tableMissed, "a", "pods\x00n/x\x00u"), "?"), "deletes are still to be told that a sink has missed"},
		"new sink": {func(s *Store) {
			must(t, s.Commit(Batch{PendingSnapshots: []PendingSnapshot{owe("a", "pods", change.NewSink)}}))
		}, "sink a waits for a snapshot of pods (newsink)"},
		"initial":         {at(position{version: "5", complete: true, epoch: "8f2c0000-uid", selector: "(initial)l"}), "a snapshot of pods is under way"},
		"compared":        {at(position{version: "5", complete: true, epoch: "8f2c0000-uid", selector: "(compared)"}), "a snapshot of pods is under way"},
		"interrupted":     {at(position{version: "5", selector: "(interrupted)"}), "a snapshot of pods is under way"},
		"left under way":  {at(position{version: "5", selector: "(not configured)(interrupted)"}), "a snapshot of pods is under way"},
		"other history":   {at(position{version: "5", epoch: "(interrupted)"}), "a snapshot of pods is under way"},
		"never delivered": {at(position{}), "a snapshot of pods is under way"},
	} {
		t.Run(name, func(t *testing.T) {
			opts := inMemory(vfs.NewMem())
			writeEarlier(t, opts, c.more)
			before := allRows(t, opts)
			for _, readOnly := range []bool{true, false} {
				opts := opts
				opts.ReadOnly = readOnly
				_, err := Open(t.Context(), "state", opts)
				want := "open state state: written by an earlier version of exporter (format 1, this one writes 2): it cannot be converted while something is open in it (" + c.open +
					"): start the earlier version once more, wait until that is over, and stop it cleanly; or give the state up with: exporter checkpoint reset --state-dir state"
				var refused *EarlierError
				if !errors.As(err, &refused) || err.Error() != want {
					t.Errorf("have %v, want %s", err, want)
				}
			}
			if !maps.Equal(allRows(t, opts), before) {
				t.Error("it has changed")
			}
		})
	}
}

// TestAnEarlierStateThatIsLookedAtStaysAsItIs, and says what the next start does. It is no empty directory, and tells
// how it stands to the log of the state.
func TestAnEarlierStateThatIsLookedAtStaysAsItIs(t *testing.T) {
	opts := inMemory(vfs.NewMem())
	writeEarlier(t, opts, nil)
	before := allRows(t, opts)
	looking := opts
	looking.ReadOnly = true
	_, err := Open(t.Context(), "state", looking)
	want := "open state state: written by an earlier version of exporter (format 1, this one writes 2): the next start converts it, and shows it then"
	if err == nil || err.Error() != want {
		t.Errorf("have %v, want %s", err, want)
	}
	if led, found, err := LedAt(t.Context(), "state", opts); err != nil || !found || string(led.Logged) != "place" {
		t.Errorf("the directory is led at %+v, %v (%v)", led, found, err)
	}
	if _, err := Restore(t.Context(), "state", opts); !errors.Is(err, ErrState) {
		t.Errorf("it is filled anew: %v", err)
	}
	if !maps.Equal(allRows(t, opts), before) {
		t.Error("it has changed")
	}
}

// TestAStreamThatIsNotConfiguredIsConverted: its sinks have what they have. Its selection is none that is ever
// configured, so it is compared when it is back.
func TestAStreamThatIsNotConfiguredIsConverted(t *testing.T) {
	opts := inMemory(vfs.NewMem())
	writeEarlier(t, opts, func(s *Store) {
		put(t, s, string(tableCarried)+"a", string(appendText(nil, "an earlier mark"))) // which counts no more
		setPosition(t, s, "pods", position{version: "139", epoch: "8f2c0000-uid", selector: "(not configured)"})
	})
	s, err := Open(t.Context(), "state", opts)
	must(t, err)
	state, err := s.LoadSink("a")
	must(t, err)
	if want := (Place{At: Point{1, "138"}, High: Point{1, "139"}, Selection: "(not configured)"}); state.Places["pods"][Others] != want {
		t.Errorf("it is at %+v, want %+v", state.Places["pods"], want)
	}
	must(t, s.Close())
}

// TestI11ACopyOfAnEarlierLogIsConverted when it becomes the state.
func TestI11ACopyOfAnEarlierLogIsConverted(t *testing.T) {
	for name, open := range map[string]bool{"closed": false, "open": true} {
		t.Run(name, func(t *testing.T) {
			opts := inMemory(vfs.NewMem())
			writeEarlier(t, opts, func(s *Store) {
				if open {
					put(t, s, earlierKey(tableAbsent, "b", "pods"), "?")
				}
			})
			log := allRows(t, opts)
			opts = inMemory(vfs.NewMem())
			c, err := OpenCopy(t.Context(), "state", opts)
			must(t, err)
			must(t, c.Begin(t.Context()))
			for key, value := range log {
				if isLogged([]byte(key)) {
					must(t, c.Apply(Changes{}.Set([]byte(key), []byte(value)), nil))
				}
			}
			must(t, c.Apply(nil, []byte("1")))
			must(t, c.Finish([]byte("1"), func(string, []byte) error { return nil }))
			s, err := Open(t.Context(), "state", opts)
			if open {
				var refused *EarlierError
				if !errors.As(err, &refused) || len(refused.Open) != 1 {
					t.Errorf("have %v, want that it is refused", err)
				}
				return
			}
			must(t, err)
			state, err := s.LoadSink("b")
			must(t, err)
			if len(state.Places) != 2 || state.Mark != "b-mark" {
				t.Errorf("sink b is at %q %+v", state.Mark, state.Places)
			}
			must(t, s.Close())
		})
	}
}

// TestI8TheClustersThatWereMetKeepTheirHistories.
func TestI8TheClustersThatWereMetKeepTheirHistories(t *testing.T) {
	for name, c := range map[string]struct {
		met   []string
		epoch string // of the pods
		want  map[string]History
	}{
		"one":           {nil, "8f2c0000-uid", map[string]History{"8f2c0000-uid": 1}},
		"one, restored": {nil, restoredAt, map[string]History{"8f2c0000-uid": 1}},
		"another one":   {[]string{"before"}, restoredAt, map[string]History{"before": 1, "8f2c0000-uid": 1_700_000_000_000}},
		"not read yet":  {[]string{"before"}, "before", map[string]History{"before": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			opts := inMemory(vfs.NewMem())
			writeEarlier(t, opts, func(s *Store) {
				for _, uid := range c.met {
					must(t, s.set(keyOf(tableUID, uid), nil))
				}
				for _, stream := range []string{"pods", "shop/secrets"} {
					setPosition(t, s, stream, position{version: "600", complete: true, epoch: c.epoch})
				}
			})
			s, err := Open(t.Context(), "state", opts)
			must(t, err)
			if met, err := s.met(); err != nil || !maps.Equal(met, c.want) {
				t.Errorf("have %v, want %v (%v)", met, c.want, err)
			}
			if epoch, err := s.EpochOf(HistoryOf(c.epoch)); err != nil || epoch != c.epoch {
				t.Errorf("the epoch is %s, and was %s (%v)", epoch, c.epoch, err)
			}
			must(t, s.Close())
		})
	}
}

// TestI11AStateOfTheEarlierBinaryIsConverted: testdata/format1.zip is what the last exporter of format 1 left when it
// was stopped, with two files as sinks and an API server whose objects had come and gone.
func TestI11AStateOfTheEarlierBinaryIsConverted(t *testing.T) {
	left, err := zip.OpenReader("testdata/format1.zip")
	must(t, err)
	dir := t.TempDir() + "/state"
	must(t, os.CopyFS(dir, left))
	must(t, left.Close())
	s := open(t, dir)
	at := func(below, version string) Place { return Place{At: Point{1, below}, High: Point{1, version}} }
	inSecrets := Places{"kube-system": at("234", "234"), "shop": at("241", "242")}
	configMaps := Places{Others: at("240", "241")}
	for name, want := range map[string]Saved{
		"lake": {Mark: `{"offset":37174,"sum":"7aba8274"}`, Places: map[string]Places{
			"configmaps": configMaps, "namespaces": {Others: at("234", "234")}, "serviceaccounts": {Others: at("234", "234")}, "secrets": inSecrets,
		}},
		"pond": {Mark: `{"offset":27844,"sum":"4ca0aed0"}`, Places: map[string]Places{"configmaps": configMaps}},
	} {
		state, err := s.LoadSink(name)
		must(t, err)
		if state.Mark != want.Mark || !maps.EqualFunc(state.Places, want.Places, maps.Equal[Places, Places]) {
			t.Errorf("sink %s is at %q %+v, want %+v", name, state.Mark, state.Places, want)
		}
		row, err := state.Row(Object{"configmaps", change.Key{Namespace: "shop", Name: "cm-10"}})
		if want := (Row{At: Point{1, "213"}, UID: "5653cd3d-d596-4367-891e-ca6962098c57"}); row != want {
			t.Errorf("sink %s has %+v, want %+v (%v)", name, row, want, err)
		}
		for resource, want := range map[string]int{"configmaps": 29, "namespaces": 5, "secrets": 2} {
			have := 0
			for range state.Objects(resource, Others, "") {
				have++
			}
			if have != want && (name == "lake" || resource == "configmaps") {
				t.Errorf("sink %s has %d %s, want %d", name, have, resource, want)
			}
		}
	}
}
