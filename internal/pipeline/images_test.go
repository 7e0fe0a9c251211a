package pipeline

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/line"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// keptUpdate is a record of the watch whose object is kept.
func keptUpdate(name string, version int) *change.Record {
	rec := update(pods(), name, version)
	rec.Keep = true
	return rec
}

// last is what is known of the object, as text.
func last(t *testing.T, images *line.Images, name string) string {
	t.Helper()
	image, found, err := images.Last("pods", change.Key{Namespace: "n", Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(found, " ", image.UID, " ", string(image.Object))
}

func (r *rig) wantLast(images *line.Images, name, want string) {
	r.t.Helper()
	if got := last(r.t, images, name); got != want {
		r.t.Errorf("last of %s is %s, want %s", name, got, want)
	}
}

// TestI5LastObjectIsInLineOrSaved: the next record must not be told of an older state because the newer one is still on
// its way, nor after it is saved, nor in the next life.
func TestI5LastObjectIsInLineOrSaved(t *testing.T) {
	fault, entered, open := gate()
	target := &memory{fault: fault}
	r := newRig(t, sinkOf("s", target))
	var images *line.Images
	err := r.life(func(inlet *Inlet) {
		images = line.NewImages(r.store)
		inlet.line.Images = images
		r.push(inlet, keptUpdate("a", 1), keptUpdate("gone", 2))
		<-entered // nothing is saved before the gate opens
		deleted := keptUpdate("gone", 4)
		deleted.Op = change.Deleted
		hidden := keptUpdate("a", 5)
		hidden.Filtered, hidden.Object = true, nil
		r.push(inlet, keptUpdate("a", 3), deleted, hidden)
		r.wantLast(images, "a", `true uid-a {"v":3}`)
		r.wantLast(images, "gone", "false uid-gone ")
		close(open)
		r.drain(inlet, pods())
		r.wantLast(images, "a", `true uid-a {"v":3}`)
		r.wantLast(images, "gone", "false  ")
	})
	if err != nil {
		t.Fatal(err)
	}
	target.fault = nil
	if err := r.life(func(*Inlet) { r.wantLast(line.NewImages(r.store), "a", `true uid-a {"v":3}`) }); err != nil {
		t.Fatal(err)
	}
}

// A record that no sink may have is a dead letter before a gap stands in its place; in the inventory is its version,
// and of what is kept of objects it changes nothing. Its letter is sent again as any other.
func TestI1I4WithheldRecordIsKeptBeforeItsNote(t *testing.T) {
	p := newPost(t)
	p.target.before = func(m *sink.Message) error {
		if m.Op == "gap" && p.kept() != "a/2/filter" {
			t.Errorf("the note goes out, and the letters are %q", p.kept())
		}
		return nil
	}
	withheld := keptUpdate("a", 2)
	withheld.Withheld = "filter"
	p.live(func(inlet *Inlet) {
		inlet.line.Images = line.NewImages(p.store)
		p.push(inlet, keptUpdate("a", 1), withheld, keptUpdate("b", 3))
		p.drain(inlet, pods())
		p.wantLast(inlet.line.Images, "a", `true uid-a {"v":1}`)
		if entry, _, err := p.store.Lookup("pods", withheld.Key); err != nil || entry.ResourceVersion != "2" {
			t.Errorf("inventory has %+v, %v", entry, err)
		}
		p.expect("a/1/updated a/2/gap b/3/updated", "a/2/filter")
		l := p.only()
		if string(l.Object) != `{"v":2}` || !bytes.Contains(l.Value, l.Object) || !strings.Contains(l.Error, "filterFailure") {
			t.Errorf("the letter has %s in %s, because %s", l.Object, l.Value, l.Error)
		}
		if err := p.replay(l, false); err != nil || !strings.Contains(p.target.last(), `"replayed":"current"`) {
			t.Errorf("sent again: %v, as %s", err, p.target.last())
		}
		p.drain(inlet, pods())
	})
	p.expect("a/1/updated a/2/gap b/3/updated a/2/updated", "")
}

// What waits on disk is withheld there, too: it becomes a letter when its turn comes.
func TestI4WithheldRecordFromDiskIsKept(t *testing.T) {
	p, release := newSpoolingPost(t)
	var want []string
	p.live(func(inlet *Inlet) {
		for i := 1; i <= 12; i++ {
			rec := update(pods(), "a", i)
			if i%2 == 0 {
				rec.Withheld = "filter"
				want = append(want, fmt.Sprintf("a/%d/filter", i))
			}
			p.push(inlet, rec)
		}
		p.drain(inlet, pods()) // to disk
		release()
		p.await("the last note", func() bool { return strings.HasSuffix(p.target.short(), "a/12/gap") })
	})
	got := strings.Fields(p.kept())
	if slices.Sort(want); !slices.Equal(slices.Sorted(slices.Values(got)), want) || strings.Count(p.target.short(), "gap") != len(want) {
		t.Errorf("the letters are %q, want %q, and the log %s", got, want, p.target.short())
	}
}

// The gap that stands for a withheld record is found in the log after a crash, and not written twice.
func TestI3WithheldRecordIsReplayedAsItsGap(t *testing.T) {
	target := &memory{}
	r := newRig(t, sinkOf("s", target))
	withheld := func() *change.Record {
		rec := update(pods(), "a", 2)
		rec.Withheld = "filter"
		return rec
	}
	if err := r.life(func(inlet *Inlet) { r.push(inlet, update(pods(), "a", 1)); r.drain(inlet, pods()) }); err != nil {
		t.Fatal(err)
	}
	target.log = append(target.log, idOf(change.NoteOf(withheld(), "filter", "")), idOf(update(pods(), "b", 3)))
	err := r.life(func(inlet *Inlet) {
		r.push(inlet, withheld(), update(pods(), "b", 3), update(pods(), "a", 4))
		r.drain(inlet, pods())
	})
	if want := "a/1/updated a/2/gap b/3/updated a/4/updated"; err != nil || target.short() != want {
		t.Errorf("%v; log %s, want %s", err, target.short(), want)
	}
}

// What a note stands for is nowhere in it: neither the object nor what it was.
func TestI9NoteHasNothingOfTheObject(t *testing.T) {
	target := &memory{}
	target.fault = func(_ context.Context, batch []sink.Message) error {
		for _, message := range batch {
			if id, _ := change.ParseID(message.ID); id.Op == change.Gap && (len(message.Value) == 0 || bytes.Contains(message.Value, []byte("planted"))) {
				t.Errorf("the note is %s", message.Value)
			}
		}
		return nil
	}
	r := newRig(t, sinkOf("s", target))
	err := r.life(func(inlet *Inlet) {
		rec := update(pods(), "a", 1)
		rec.Object, rec.Before, rec.Withheld = []byte(`{"planted":1}`), []byte(`{"planted":2}`), "filter"
		if note := change.NoteOf(rec, "filter", ""); note.Object != nil || note.Before != nil || rec.Object == nil {
			t.Errorf("the note of %+v is %+v", rec, note)
		}
		r.push(inlet, rec)
		r.drain(inlet, pods())
	})
	if err != nil || target.short() != "a/1/gap" {
		t.Errorf("%v; log %s", err, target.short())
	}
}
