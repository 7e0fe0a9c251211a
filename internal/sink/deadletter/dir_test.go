package deadletter

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint/disk"
	"github.com/kubecdc/kubecdc/internal/sink"
)

const clusterUID = "0b6f3c1e-8a4d-4c39-9d2b-0a1b2c3d4e5f"

func newDir(t *testing.T) *Dir {
	d := New(Options{Dir: filepath.Join(t.TempDir(), "letters", "bus"), Sink: "bus", Cluster: "prod", ClusterUID: clusterUID})
	d.usage = func(string) (disk.Usage, error) { return disk.Usage{Free: 1 << 40, Total: 1 << 40}, nil }
	return d
}

func record(version string) *change.Record {
	return &change.Record{
		Stream: &change.Stream{Resource: change.Resource{Group: "apps", Version: "v1", Name: "deployments", Kind: "Deployment"}, Namespace: "shop"},
		Op:     change.Updated, Key: change.Key{Namespace: "shop", Name: "web"}, UID: "u-1", ResourceVersion: version,
		Object: []byte(`{"kind" : "Deployment","a":"<&>\u003c"}`), Received: time.Unix(1700000000, 5000).UTC(),
	}
}

// message is as an encoder makes it: the object is in its value as it came.
func message(rec *change.Record) *sink.Message {
	return &sink.Message{
		ID: rec.ID(clusterUID).String(), Op: rec.Op.String(), Destination: "k8s.x", Key: []byte("shop/web\xff"),
		Headers: []sink.Header{{Name: "a", Value: "b"}}, Value: append(append([]byte(`{"data":`), rec.Object...), '}'),
	}
}

func tooLarge() *sink.RejectedError {
	return &sink.RejectedError{Reason: "too_large", Err: errors.New("publish 2 MB: the limit is 1 MB")}
}

func keep(t *testing.T, d *Dir, rec *change.Record) string {
	t.Helper()
	id, err := d.Keep(rec, message(rec), tooLarge())
	must(t, err)
	return id
}

// ids are those of all letters, the oldest first.
func ids(t *testing.T, d *Dir) []string {
	t.Helper()
	var all []string
	for l, err := range d.All() {
		must(t, err)
		all = append(all, l.ID)
	}
	return all
}

// TestI6LettersHaveABound: above it nothing is kept, and there is room again when somebody has deleted letters.
func TestI6LettersHaveABound(t *testing.T) {
	d := newDir(t)
	now := time.Now()
	d.now = func() time.Time { return now }
	d.Bytes = 5 * block
	var kept []string
	for version := range 20 {
		if id := keep(t, d, record(strconv.Itoa(version))); id != "" {
			kept = append(kept, id)
		}
	}
	if used, err := d.size(); err != nil || used != d.Bytes || len(kept) != 5 || len(ids(t, d)) != 5 {
		t.Fatalf("%d letters of %d bytes are kept, %v", len(kept), used, err)
	}
	if id := keep(t, d, record("0")); id != kept[0] {
		t.Errorf("a letter that is there has the id %q, want %s", id, kept[0])
	}
	for _, id := range kept {
		must(t, os.Remove(d.file(id)))
	}
	if id := keep(t, d, record("100")); id != "" {
		t.Error("the letters are counted again at once")
	}
	now = now.Add(recount)
	if id := keep(t, d, record("100")); id == "" {
		t.Error("no letter is kept, though there is room")
	}
}

func TestI4NothingOfARecordIsLost(t *testing.T) {
	for name, change := range map[string]func(*change.Record, *sink.Message){
		"as it is":       func(*change.Record, *sink.Message) {},
		"a tombstone":    func(_ *change.Record, m *sink.Message) { m.Value = nil },
		"an empty value": func(_ *change.Record, m *sink.Message) { m.Value = []byte{} },
		"no object":      func(rec *change.Record, _ *sink.Message) { rec.Object = nil },
		"a state before": func(rec *change.Record, _ *sink.Message) { rec.Before = []byte(`{"b":1}`) },
		"no object but one before": func(rec *change.Record, m *sink.Message) {
			rec.Object, rec.Before, m.Value = nil, []byte(`{"b":1}`), []byte("x")
		},
		"another value":    func(_ *change.Record, m *sink.Message) { m.Value = []byte("\xff\x00\nno JSON") },
		"an unknown state": func(rec *change.Record, _ *sink.Message) { rec.Op, rec.FinalStateUnknown = change.Deleted, true },
		"of a snapshot":    snapshot,
		"beside one": func(rec *change.Record, _ *sink.Message) {
			rec.Op, rec.DuringSnapshot, rec.Actor = change.Updated, true, []byte(`[{"manager":"m"}]`)
			rec.Involved = []byte(`{"labels":{"app":"web"}}`)
		},
		"of another cluster": func(rec *change.Record, _ *sink.Message) { rec.Epoch = "eeeeeeee-1111" },
	} {
		t.Run(name, func(t *testing.T) {
			d, rec := newDir(t), record("7")
			msg := message(rec)
			change(rec, msg)
			id, err := d.Keep(rec, msg, tooLarge())
			must(t, err)
			l, err := d.Get(id)
			must(t, err)
			if !bytes.Equal(l.Value, msg.Value) || (l.Value == nil) != (msg.Value == nil) || !bytes.Equal(l.Key, msg.Key) || l.Destination != msg.Destination || l.Headers[0] != (sink.Header{Name: "a", Value: "b"}) {
				t.Errorf("message is %+v, want %+v", l, msg)
			}
			if l.Event != msg.ID || l.Reason != "too_large" || l.Error != "publish 2 MB: the limit is 1 MB" || l.Sink != "bus" || l.Cluster != "prod" || time.Since(l.Time) > time.Hour {
				t.Errorf("letter is %+v", l)
			}
			rec.Sink = "bus"
			if back := l.Record(clusterUID); !reflect.DeepEqual(back, rec) {
				t.Errorf("record is %+v, want %+v", back, rec)
			}
		})
	}
}

func snapshot(rec *change.Record, _ *sink.Message) {
	rec.Op, rec.Snapshot = change.Sync, &change.Snapshot{ID: "900.1", Reason: change.Resync}
}

// The same state of an object has one letter, whichever record tells of it, so that full snapshots do not fill the
// disk.
func TestTheSameStateIsKeptOnce(t *testing.T) {
	d := newDir(t)
	first := keep(t, d, record("7"))
	path := d.file(first)
	before, err := os.ReadFile(path)
	must(t, err)
	sync := record("7")
	snapshot(sync, nil)
	replaced := record("7")
	replaced.Op = change.Replaced
	for _, rec := range []*change.Record{record("7"), sync, replaced} {
		if id := keep(t, d, rec); id != first {
			t.Errorf("%s is kept as %s, want %s", rec.Op, id, first)
		}
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the letter was written anew, %v", err)
	}
	deleted := record("7")
	deleted.Op = change.Deleted
	other := record("7")
	other.UID = "u-2"
	seen := map[string]bool{first: true}
	for _, rec := range []*change.Record{record("8"), deleted, other} {
		seen[keep(t, d, rec)] = true
	}
	if n, err := d.Count(); len(seen) != 4 || n != 4 || err != nil {
		t.Errorf("%d ids, %d letters, %v; want 4", len(seen), n, err)
	}
}

func TestOthersCannotReadLetters(t *testing.T) {
	d := newDir(t)
	id := keep(t, d, record("7"))
	for path, want := range map[string]os.FileMode{d.file(id): 0o600, d.Dir: 0o700, filepath.Dir(d.Dir): 0o700, filepath.Join(d.Dir, claimedName): 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", path, info.Mode(), err, want)
		}
	}
}

func TestFullVolume(t *testing.T) {
	d := newDir(t)
	free := uint64(63 << 20)
	d.usage = func(string) (disk.Usage, error) { return disk.Usage{Free: free, Total: 1 << 40}, nil }
	_, err := d.Keep(record("7"), message(record("7")), tooLarge())
	var full *disk.FullError
	if !errors.As(err, &full) || !strings.HasSuffix(err.Error(), "only 63 MiB free, 64 MiB needed: free space or enlarge the volume; nothing is lost, the sink continues when there is space") {
		t.Fatalf("got %v", err)
	}
	if n, _ := d.Count(); n != 0 {
		t.Errorf("%d letters", n)
	}
	free = 65 << 20
	keep(t, d, record("7"))
}

// A crash while a letter was written leaves a part of it, which is no letter, and does not hinder the next attempt.
func TestI4APartOfALetterIsNone(t *testing.T) {
	d := newDir(t)
	id := keep(t, d, record("7"))
	whole, err := os.ReadFile(d.file(id))
	must(t, err)
	must(t, errors.Join(os.Remove(d.file(id)), os.WriteFile(d.claimed(id)+unfinished, whole[:len(whole)/2], 0o600)))
	if left := ids(t, d); len(left) != 0 {
		t.Errorf("letters are %q", left)
	}
	must(t, settle(d))
	if again := keep(t, d, record("7")); again != id || len(ids(t, d)) != 1 {
		t.Errorf("kept as %s, letters are %q", again, ids(t, d))
	}
	if entries, err := os.ReadDir(filepath.Join(d.Dir, claimedName)); len(entries) != 0 || err != nil {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestClaimedLetterIsRemovedOnlyWhereTheSinkHasIt(t *testing.T) {
	d := newDir(t)
	one, two := keep(t, d, record("7")), keep(t, d, record("8"))
	event := record("7").ID(clusterUID).String()
	for _, id := range []string{one, two, one} {
		if found, err := d.Claim(id); !found || err != nil {
			t.Fatalf("claim: %v, %v", found, err)
		}
	}
	if got := ids(t, d); len(got) != 2 {
		t.Errorf("while they are on their way: %q", got)
	}
	if l, err := d.Get(one); err != nil || l.ID != one {
		t.Errorf("a claimed letter: %v", err)
	}
	must(t, settle(d, "something", event))
	if got := ids(t, d); len(got) != 1 || got[0] != two {
		t.Errorf("left are %q, want %q", got, two)
	}
	if found, err := d.Claim(one); found || err != nil {
		t.Errorf("claim of what is gone: %v, %v", found, err)
	}
	if _, err := d.Get(one); !errors.Is(err, errNoLetter) {
		t.Errorf("got %v", err)
	}
	// What is not claimed is not removed, though the sink has the event: it may have been cut when it was delivered.
	if err := settle(d, record("8").ID(clusterUID).String()); err != nil || len(ids(t, d)) != 1 {
		t.Errorf("%v, left are %q", err, ids(t, d))
	}
}

func TestDamagedLetterIsSaidAndHidesNoOther(t *testing.T) {
	d := newDir(t)
	one, two, three := keep(t, d, record("7")), keep(t, d, record("8")), keep(t, d, record("9"))
	must(t, os.WriteFile(d.file(one), []byte("{}"), 0o600))
	body, err := os.ReadFile(d.file(two))
	must(t, err)
	body[len(body)-2] ^= 1
	must(t, os.WriteFile(d.file(two), body, 0o600))
	var listed []string
	var damage error
	for l, err := range d.All() {
		if err != nil {
			damage = errors.Join(damage, err)
			continue
		}
		listed = append(listed, l.ID)
	}
	if len(listed) != 2 || listed[1] != three || damage == nil || !strings.Contains(damage.Error(), d.file(one)+": it is damaged: its first line is incomplete") {
		t.Errorf("listed %q, %v", listed, damage)
	}
	if _, err := d.Get(two); err == nil || !strings.Contains(err.Error(), "its content is not what was written: delete the file, or restore it from a copy") {
		t.Errorf("got %v", err)
	}
	for _, id := range []string{"", "..", "../" + three, "none"} {
		if _, err := d.Get(id); !errors.Is(err, errNoLetter) && id != "" {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestDocumentHasTheValue(t *testing.T) {
	d := newDir(t)
	for value, want := range map[string]string{`{"a":"<"}`: `{"a":"<"}`, "\xff": ``, "\x00\x00\x00\x00\x07{}": ``} {
		msg := message(record("7"))
		msg.Value = []byte(value)
		l := newLetter(&d.Options, record("7"), msg, tooLarge())
		if _, _, err := l.encode(); err != nil {
			t.Fatal(err)
		}
		text, err := l.Document()
		must(t, err)
		var back struct {
			ID          string
			Value       json.RawMessage
			ValueBase64 []byte
			Object      json.RawMessage
		}
		if err := json.Unmarshal(text, &back); err != nil || back.ID != l.ID {
			t.Fatalf("%v in %s", err, text)
		}
		var compact bytes.Buffer
		if want != "" {
			if err := json.Compact(&compact, back.Value); err != nil || compact.String() != want {
				t.Errorf("value is %s, want %s", back.Value, want)
			}
		} else if string(back.ValueBase64) != value || back.Value != nil || back.Object == nil {
			t.Errorf("value is %q, and the object %q", back.ValueBase64, back.Object)
		}
	}
}

func TestSinksOfADirectory(t *testing.T) {
	d := newDir(t)
	parent := filepath.Dir(d.Dir)
	if names, err := Sinks(parent); len(names) != 0 || err != nil {
		t.Errorf("before there is one: %q, %v", names, err)
	}
	keep(t, d, record("7"))
	if names, err := Sinks(parent); len(names) != 1 || names[0] != "bus" || err != nil {
		t.Errorf("got %q, %v", names, err)
	}
	if n, err := newDir(t).Count(); n != 0 || err != nil {
		t.Errorf("of no directory: %d, %v", n, err)
	}
}

// settle settles the claimed letters of a sink that holds the events.
// TestALetterThatCannotBeRemovedIsRemovedLater, when its state is delivered once more.
func TestALetterThatCannotBeRemovedIsRemovedLater(t *testing.T) {
	d := newDir(t)
	id := keep(t, d, record("5"))
	if _, err := d.Delivered(record("4")); err != nil { // it knows its letters from now on
		t.Fatal(err)
	}
	away := d.file(id) + ".away"
	for _, err := range []error{os.Rename(d.file(id), away), os.MkdirAll(filepath.Join(d.file(id), "full"), 0o700)} {
		must(t, err)
	}
	if _, err := d.Delivered(record("5")); err == nil {
		t.Error("the letter cannot be removed, and there is no error")
	}
	for _, err := range []error{os.RemoveAll(d.file(id)), os.Rename(away, d.file(id))} {
		must(t, err)
	}
	if removed, err := d.Delivered(record("5")); err != nil || removed != id || len(ids(t, d)) > 0 {
		t.Errorf("removed is %q, want %q, there are %v, %v", removed, id, ids(t, d), err)
	}
}

func settle(d *Dir, events ...string) error {
	held, end, err := d.Settle()
	if err != nil {
		return err
	}
	for _, event := range events {
		held(event)
	}
	return end()
}

// TestI4ACopyOfTheFilesIsWhole: whoever follows what changes has the files, at each step, and can put them back.
func TestI4ACopyOfTheFilesIsWhole(t *testing.T) {
	d, copied := newDir(t), map[string]string{}
	d.Changed = func(name string) {
		content, err := d.Read(name)
		must(t, err)
		if delete(copied, name); content != nil {
			copied[name] = string(content)
		}
	}
	compare := func(step string, n int) {
		t.Helper()
		names, err := d.Files()
		if err != nil || len(names) != n || len(copied) != n {
			t.Fatalf("%s: files %q, copied %d, want %d (%v)", step, names, len(copied), n, err)
		}
		for _, name := range names {
			if content, err := os.ReadFile(filepath.Join(d.Dir, name)); err != nil || copied[name] != string(content) {
				t.Errorf("%s: the copy of %s is another one (%v)", step, name, err)
			}
		}
	}
	first, second := keep(t, d, record("1")), keep(t, d, record("2"))
	compare("kept", 2)
	for _, id := range []string{first, second} {
		if _, err := d.Claim(id); err != nil {
			t.Fatal(err)
		}
	}
	compare("claimed", 2)
	held, end, err := d.Settle()
	must(t, err)
	held(record("1").ID(clusterUID).String())
	must(t, end())
	compare("settled", 1)
	must(t, d.Mend(func(*Letter) bool { return true }, func(l *Letter) error { l.Form = "new"; return nil }))
	compare("mended", 1)
	other := newDir(t)
	for name, content := range copied {
		must(t, other.PutBack(name, []byte(content)))
	}
	if _, err := other.Get(second); err != nil {
		t.Errorf("what was put back is no letter: %v", err)
	}
	if found, err := other.Claim(second); err != nil || !found {
		t.Errorf("what was put back cannot be sent again: %t, %v", found, err)
	}
	if err := other.PutBack("../x.letter", nil); err == nil {
		t.Error("a name leads out of the directory")
	}
}
