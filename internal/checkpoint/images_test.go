package checkpoint

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kubecdc/kubecdc/internal/change"
)

// kept is a Pod as sink out was told of it last.
func kept(name, version string) KeptObject {
	return KeptObject{"pods", change.Key{Namespace: "shop", Name: name}, change.Image{
		UID: "u", Version: version, Object: []byte(`{"version":"` + version + `"}`), Sinks: []string{"out"},
	}}
}

func keep(t *testing.T, s *Store, objects ...KeptObject) {
	t.Helper()
	must(t, s.SaveSinks(nil, Spools{}, &Keeping{objects, []string{"out"}}))
}

// wantObject holds what is kept under the name against the text, "" for nothing.
func wantObject(t *testing.T, s *Store, name, text string) {
	t.Helper()
	images, err := s.Images("pods", change.Key{Namespace: "shop", Name: name})
	must(t, err)
	if len(images) > 1 || (len(images) == 1) != (text != "") || len(images) == 1 && (images[0].UID != "u" || string(images[0].Object) != text) {
		t.Errorf("%s: kept is %s, want %s", name, images, text)
	}
}

// TestI5KeptObjectsAreSavedAndForgotten, also over a restart, and are gone with their stream.
func TestI5KeptObjectsAreSavedAndForgotten(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	must(t, s.KnowStreams([]change.Stream{*pods}))
	must(t, s.KeepObjects("pods", []byte("form")))
	gone := kept("gone", "9")
	keep(t, s, kept("web", "5"), gone)
	gone.Version, gone.Object = "10", nil
	keep(t, s, kept("web", "7"), gone)
	for range 2 {
		wantObject(t, s, "web", `{"version":"7"}`)
		wantObject(t, s, "gone", "")
		must(t, s.Close())
		s = open(t, dir)
		must(t, s.KeepObjects("pods", []byte("form")))
	}
	if gone, err := s.ForgetStream(pods); !gone || err != nil {
		t.Errorf("the stream is forgotten: %v (%v)", gone, err)
	}
	wantObject(t, s, "web", "")
}

// TestI9ObjectsOfAnotherFormAreForgotten: what was kept before a rule of redaction came may hold what it hides.
func TestI9ObjectsOfAnotherFormAreForgotten(t *testing.T) {
	for name, next := range map[string][]byte{"another form": []byte("redacted"), "nothing is kept any more": nil} {
		s := open(t, t.TempDir())
		must(t, s.KeepObjects("pods", []byte("bare")))
		other := kept("s", "6")
		other.Stream = secrets.String()
		keep(t, s, kept("web", "5"), other)
		must(t, s.KeepObjects("pods", next))
		wantObject(t, s, "web", "")
		if images, err := s.Images(secrets.String(), other.Key); err != nil || len(images) != 1 {
			t.Errorf("%s: the object of another stream is gone (%v)", name, err)
		}
	}
}

// TestI5EachSinkHasWhatItWasToldLast, however far the sinks are apart, also of what they were told with one save.
// Nothing is kept that no sink was told last, or for a sink that is gone.
func TestI5EachSinkHasWhatItWasToldLast(t *testing.T) {
	s := open(t, t.TempDir())
	random := rand.New(rand.NewPCG(3, 1))
	names := []string{"a", "b", "c"}
	version, has := map[string]int{}, map[string]string{}
	for step := range 2000 {
		if step == 1900 {
			delete(has, "c")
			names = names[:2]
		}
		var objects []KeptObject
		for range 1 + random.IntN(4) {
			name := names[random.IntN(len(names))]
			version[name] += 1 + random.IntN(2)
			one := kept("web", strconv.Itoa(version[name]))
			one.Sinks = []string{name}
			if version[name]%7 == 0 {
				one.Object = nil
			}
			objects, has[name] = append(objects, one), string(one.Object)
		}
		must(t, s.SaveSinks(nil, Spools{}, &Keeping{objects, names}))
		images, err := s.Images("pods", objects[0].Key)
		must(t, err)
		distinct := map[string]bool{}
		for name, want := range has {
			if image := images.Of(name); string(image.Object) != want || want != "" && !strings.Contains(want, `"`+image.Version+`"`) {
				t.Fatalf("step %d: %s was told %s last; kept is %s", step, name, want, images)
			}
			distinct[want] = want != ""
		}
		delete(distinct, "")
		newestFirst := slices.IsSortedFunc(images, func(a, b change.Image) int { return change.CompareVersions(b.Version, a.Version) })
		if len(images) != len(distinct) || !newestFirst || len(images.Of("c").Object) > 0 && len(names) == 2 {
			t.Fatalf("step %d: kept is %s for %v", step, images, has)
		}
	}
}

func TestDamagedObjectIsToldOf(t *testing.T) {
	s := open(t, t.TempDir())
	key := kept("web", "1").Key
	for _, value := range []string{"\x05u", "\x01u\x01", "\x01u\x015\x01a", "\x01u\x015\x01a\x01\xff"} {
		must(t, s.db.Set(objectKey("pods", key), []byte(value), pebble.Sync))
		if images, err := s.Images("pods", key); err == nil {
			t.Errorf("%q is read as %s (%v)", value, images, err)
		}
	}
}

// TestKeptObjectsArePacked.
func TestKeptObjectsArePacked(t *testing.T) {
	s := open(t, t.TempDir())
	large := kept("web", "5")
	large.Object = []byte(strings.Repeat(`{"a":"b"},`, 1000))
	keep(t, s, large)
	value, _, err := s.get(objectKey("pods", large.Key))
	if err != nil || len(value) > len(large.Object)/4 {
		t.Errorf("%d bytes became %d: %v", len(large.Object), len(value), err)
	}
	wantObject(t, s, "web", string(large.Object))
}
