package checkpoint

import (
	"bytes"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// kept is a Pod as it was told last.
func kept(name, version string) KeptObject {
	return KeptObject{Stream: "pods", Key: change.Key{Namespace: "shop", Name: name}, UID: "u", Version: version, Object: []byte(`{"version":"` + version + `"}`)}
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

// TestI5KeptObjectsAreSavedAndForgotten, also over a restart, and are gone with their stream.
func TestI5KeptObjectsAreSavedAndForgotten(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	must(t, s.KnowStreams([]change.Stream{*pods}))
	must(t, s.KeepObjects("pods", []byte("form")))
	gone := kept("gone", "9")
	must(t, s.SaveSinks(nil, Spools{}, []KeptObject{kept("web", "5"), gone}))
	gone.Object = nil
	must(t, s.SaveSinks(nil, Spools{}, []KeptObject{kept("web", "7"), gone}))
	for range 2 {
		wantObject(t, s, "web", "u", `{"version":"7"}`)
		wantObject(t, s, "gone", "u", "")
		must(t, s.Close())
		s = open(t, dir)
		must(t, s.KeepObjects("pods", []byte("form")))
	}
	if gone, err := s.ForgetStream(pods); !gone || err != nil {
		t.Errorf("the stream is forgotten: %v (%v)", gone, err)
	}
	wantObject(t, s, "web", "u", "")
}

// TestI9ObjectsOfAnotherFormAreForgotten: what was kept before a rule of redaction came may hold what it hides.
func TestI9ObjectsOfAnotherFormAreForgotten(t *testing.T) {
	for name, next := range map[string][]byte{"another form": []byte("redacted"), "nothing is kept any more": nil} {
		s := open(t, t.TempDir())
		must(t, s.KeepObjects("pods", []byte("bare")))
		other := kept("s", "6")
		other.Stream = secrets.String()
		must(t, s.SaveSinks(nil, Spools{}, []KeptObject{kept("web", "5"), other}))
		must(t, s.KeepObjects("pods", next))
		wantObject(t, s, "web", "u", "")
		if _, found, err := s.Object(secrets.String(), other.Key); err != nil || !found {
			t.Errorf("%s: the object of another stream is gone (%v)", name, err)
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
