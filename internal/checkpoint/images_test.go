package checkpoint

import (
	"bytes"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// kept is a record whose object is kept.
func kept(op change.Op, name, uid, version string) *change.Record {
	rec := object(op, name, uid, version)
	rec.Keep, rec.Object = true, []byte(`{"version":"`+version+`"}`)
	return rec
}

// wantObject holds what is kept under the name against the text, "" for nothing.
func wantObject(t *testing.T, s *Store, name, uid, text string) {
	t.Helper()
	image, found, err := s.Object("pods", change.Key{Namespace: "shop", Name: name})
	must(t, err)
	if found != (text != "") || found && (image.UID != uid || string(image.Object) != text) {
		t.Errorf("%s: kept %s %s, want %s %s", name, image.UID, image.Object, uid, text)
	}
}

// TestI5ObjectsAreThoseOfTheInventory: what is kept changes with the inventory's entry, or not at all.
func TestI5ObjectsAreThoseOfTheInventory(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	must(t, s.KeepObjects("pods", []byte("form")))
	filtered := kept(change.Updated, "web", "u", "8")
	filtered.Filtered, filtered.Object = true, nil
	must(t, s.Commit(Batch{Records: []*change.Record{
		kept(change.Added, "web", "u", "5"), kept(change.Updated, "web", "u", "7"), filtered,
		kept(change.Added, "gone", "u", "9"), kept(change.Deleted, "gone", "u", "10"),
		kept(change.Deleted, "made again", "u1", "11"), kept(change.Replaced, "made again", "u2", "12"),
		object(change.Added, "not kept", "u", "13"),
	}}))
	for range 2 {
		wantObject(t, s, "web", "u", `{"version":"7"}`)
		wantObject(t, s, "gone", "u", "")
		wantObject(t, s, "made again", "u2", `{"version":"12"}`)
		wantObject(t, s, "not kept", "u", "")
		if n, err := s.Count("pods"); err != nil || n != 3 {
			t.Errorf("inventory has %d entries, want 3 (%v)", n, err)
		}
		must(t, s.Close())
		s = open(t, dir)
		must(t, s.KeepObjects("pods", []byte("form")))
	}
	must(t, s.Commit(Batch{Over: []string{"pods"}}))
	wantObject(t, s, "web", "u", "")
}

// TestI9ObjectsOfAnotherFormAreForgotten: what was kept before a rule of redaction came may hold what it hides.
func TestI9ObjectsOfAnotherFormAreForgotten(t *testing.T) {
	for name, next := range map[string][]byte{"another form": []byte("redacted"), "nothing is kept any more": nil} {
		s := open(t, t.TempDir())
		must(t, s.KeepObjects("pods", []byte("bare")))
		other := kept(change.Added, "s", "u", "6")
		other.Stream = secrets
		must(t, s.Commit(Batch{Records: []*change.Record{kept(change.Added, "web", "u", "5"), other}}))
		must(t, s.KeepObjects("pods", next))
		wantObject(t, s, "web", "u", "")
		if _, found, err := s.Object(secrets.String(), other.Key); err != nil || !found {
			t.Errorf("%s: the object of another stream is gone (%v)", name, err)
		}
		if n, err := s.Count("pods"); err != nil || n != 1 {
			t.Errorf("%s: inventory has %d entries, want 1 (%v)", name, n, err)
		}
	}
}

func TestDamagedObjectIsToldOf(t *testing.T) {
	for _, value := range []string{"", "\x05u", "\x01u\xff\xff", "\x01u"} {
		if image, err := parseImage([]byte(value)); err == nil && value != "" {
			t.Errorf("%q is read as %+v", value, image)
		}
	}
	object := []byte(strings.Repeat(`{"a":"b"},`, 1000))
	value := appendImage(nil, "u", object)
	if image, err := parseImage(value); err != nil || !bytes.Equal(image.Object, object) || len(value) > len(object)/4 {
		t.Errorf("%d bytes became %d, and %d again: %v", len(object), len(value), len(image.Object), err)
	}
}
