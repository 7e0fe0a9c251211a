package shape

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// TestWhatIsIgnoredMayComeInAMapOfItsOwn: the first annotation of an object brings the map, and the last one takes it.
func TestWhatIsIgnoredMayComeInAMapOfItsOwn(t *testing.T) {
	ignored, err := Ignoring([]string{".metadata.annotations['demo/seen']", ".status.seen.at", ".status.list[*].at", ".spec.none"})
	must(t, err)
	for _, c := range []struct {
		name, one, other string
		want             bool
	}{
		{"an annotation", `{"metadata":{"name":"a","resourceVersion":"1"}}`, `{"metadata":{"name":"a","resourceVersion":"2","annotations":{"demo/seen":"1"}}}`, true},
		{"the same in front", `{"metadata":{"name":"a"}}`, `{"metadata":{"annotations":{"demo/seen":"1"},"name":"a"}}`, true},
		{"maps within maps", `{"a":1}`, `{"status" : { "seen" : { "at" : 1 } } , "a":1}`, true},
		{"maps within maps of which something stays", `{"status":{"b":2}}`, `{"status":{"seen":{"at":1},"b":2}}`, true},
		{"another annotation", `{"metadata":{"name":"a"}}`, `{"metadata":{"name":"a","annotations":{"demo/seen":"1","b":"2"}}}`, false},
		{"an empty map that no path is in", `{"spec":{}}`, `{"spec":{"podSelector":{}}}`, false},
		{"an empty map where a path would lead", `{"a":1}`, `{"a":1,"spec":{}}`, false},
		{"one more in a list", `{"status":{"list":[{"at":1}]}}`, `{"status":{"list":[{"at":1},{"at":2}]}}`, false},
		{"the whole object", `{}`, `{"status":{"seen":{"at":1}}}`, true},
	} {
		for range 2 {
			rec := &change.Record{Op: change.Updated, Before: []byte(c.one), Object: []byte(c.other)}
			if got := ignored(rec); got != c.want {
				t.Errorf("%s, from %s to %s: hidden %t, want %t", c.name, c.one, c.other, got, c.want)
			}
			c.one, c.other = c.other, c.one
		}
	}
}

// TestWhatIsIgnoredIsThatAlone: an update is hidden only where nothing else differs, and never where that is not known.
func TestWhatIsIgnoredIsThatAlone(t *testing.T) {
	const node = `{"metadata":{"name":"a","resourceVersion":"%d","labels":{"x":%q}},"status":{"conditions":[{"lastHeartbeatTime":"%d","status":%q},{"lastHeartbeatTime":"1"}]}}`
	ignored, err := Ignoring([]string{".status.conditions[*].lastHeartbeatTime"})
	must(t, err)
	before := fmt.Sprintf(node, 1, "x", 1, "True")
	for _, c := range []struct {
		name, before, after string
		want                bool
	}{
		{"a heartbeat", before, fmt.Sprintf(node, 2, "x", 2, "True"), true},
		{"nothing but the version", before, fmt.Sprintf(node, 2, "x", 1, "True"), true},
		{"a condition", before, fmt.Sprintf(node, 2, "x", 2, "False"), false},
		{"a label", before, fmt.Sprintf(node, 2, "y", 2, "True"), false},
		{"a number that a float64 cannot hold", `{"n":9007199254740993}`, `{"n":9007199254740992}`, false},
		{"managedFields", `{"metadata":{"managedFields":[{"time":"1"}],"resourceVersion":"1"}}`, `{"metadata":{"managedFields":[],"resourceVersion":"2"}}`, true},
		{"what is no JSON", before, before[:len(before)-1], false},
		{"what was no JSON", "", before, false},
		{"a deep one", strings.Repeat(`{"a":`, 9000) + "1" + strings.Repeat("}", 9000), strings.Repeat(`{"a":`, 9000) + "2" + strings.Repeat("}", 9000), false},
	} {
		rec := &change.Record{Op: change.Updated, Before: []byte(c.before), Object: []byte(c.after)}
		if got := ignored(rec); got != c.want {
			t.Errorf("%s: hidden %t, want %t", c.name, got, c.want)
		}
	}
}

// TestWhatIsIgnoredIsForAnyGoroutine: the sinks of a stream that are read for apart ask beside each other.
func TestWhatIsIgnoredIsForAnyGoroutine(t *testing.T) {
	ignored, err := Ignoring([]string{".status.at"})
	must(t, err)
	var all sync.WaitGroup
	for name := range 4 {
		object := func(at, n int) []byte {
			return fmt.Appendf(nil, `{"metadata":{"name":%q,"resourceVersion":"%d"},"status":{"at":%d,"n":%d}}`, strings.Repeat("x", 100*name), at, at, n)
		}
		all.Go(func() {
			for at := range 20_000 {
				rec := &change.Record{Op: change.Updated, Before: object(at, 1), Object: object(at+1, 1+at%2)}
				if got, want := ignored(rec), at%2 == 0; got != want {
					t.Errorf("from %s to %s: hidden %t, want %t", rec.Before, rec.Object, got, want)
					return
				}
			}
		})
	}
	all.Wait()
}
