package source

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// odd is a world whose server lists by namespace and name, which is not the order of the joined keys, in pages with
// tokens of its own. Its names are unique, whatever the namespace.
type odd struct {
	*rand.Rand
	listed []change.Key // in the server's order
	gone   []change.Key
	r      *recorder
}

func newOdd(seed uint64) *odd {
	w := &odd{Rand: rand.New(rand.NewPCG(seed, 1)), r: newRecorder()}
	for i := range 1 + w.IntN(40) {
		key := change.Key{Namespace: []string{"a", "a-b", "a.b"}[w.IntN(3)], Name: fmt.Sprintf("p%02d", i)}
		known := w.IntN(2) == 0
		if w.IntN(5) > 0 {
			w.listed = append(w.listed, key)
		} else if known {
			w.gone = append(w.gone, key)
		}
		if known {
			w.r.objects[key.String()] = change.Entry{Key: key, UID: "uid-" + key.Name, ResourceVersion: "10"}
		}
	}
	slices.SortFunc(w.listed, func(a, b change.Key) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return w
}

// list serves three objects a page.
func (w *odd) list(q url.Values) (int, string) {
	from, _ := strconv.Atoi(q.Get("continue"))
	until, token := min(from+3, len(w.listed)), ""
	if until < len(w.listed) {
		token = strconv.Itoa(until)
	}
	text := podList(100, token)
	for i, key := range w.listed[from:until] {
		item := fmt.Sprintf(`{"metadata":{"name":"%s","namespace":"%s","uid":"uid-%s","resourceVersion":"10"}}`, key.Name, key.Namespace, key.Name)
		if i > 0 {
			item = "," + item
		}
		text = strings.TrimSuffix(text, "]}") + item + "]}"
	}
	return http.StatusOK, text
}

// live lets lives follow each other until the last line is there; each dies after some records.
func (w *odd) live(t *testing.T, saved change.Position, last string, owed ...change.Owed) {
	complete := func() bool { return len(w.r.lines) > 0 && w.r.lines[len(w.r.lines)-1] == last }
	w.r.position = saved
	for !complete() {
		t.Run("life", func(t *testing.T) {
			server := script(t, 100)
			server.list = w.list
			w.r.room = 5 + w.IntN(100)
			s := server.start(w.r, w.r.position)
			for i := range owed {
				owed[i].After = w.r.after[owed[i].Sink]
			}
			s.Request(owed...)
			w.r.until(t, "the end of the life", func() bool { return w.r.room < 0 || complete() })
		})
	}
}

// count is how often the line begins so.
func (w *odd) count(prefix string) (n int) {
	for _, line := range w.r.lines {
		if strings.HasPrefix(line, prefix) {
			n++
		}
	}
	return n
}

// TestI4AListOfAnotherOrderTellsNothingFalse: whatever is interrupted, what is gone is deleted once, what is new is
// told once, and nothing is deleted that is there.
func TestI4AListOfAnotherOrderTellsNothingFalse(t *testing.T) {
	interrupted := at(50)
	interrupted.Selector = change.Interrupted
	for seed := range uint64(60) {
		for reason, saved := range map[string]change.Position{"initial": begunAt("100"), "stale": interrupted} {
			w := newOdd(seed)
			known := len(w.r.objects)
			w.live(t, saved, "snapshot.end 100 "+reason)
			want := [2]int{len(w.gone), len(w.listed) + len(w.gone) - known}
			if got := [2]int{w.count("deleted"), w.count("replaced")}; got != want {
				t.Fatalf("seed %d, %s: %d deletes and %d objects are told, want %v:\n%s", seed, reason, got[0], got[1], want, strings.Join(w.r.lines, "\n"))
			}
		}
	}
}

// TestI4AListOfAnotherOrderIsToldWhole to a new sink, though each life dies in the middle.
func TestI4AListOfAnotherOrderIsToldWhole(t *testing.T) {
	for seed := range uint64(60) {
		w := newOdd(seed)
		w.live(t, at(100), "snapshot.end 100 newsink to lake", change.Owed{Sink: "lake", Reason: change.NewSink})
		for _, key := range w.listed {
			if w.count("sync "+key.Name+" 10 to lake")+w.count("replaced "+key.Name) == 0 {
				t.Fatalf("seed %d: %s is not told:\n%s", seed, key, strings.Join(w.r.lines, "\n"))
			}
		}
		if n := w.count("deleted"); n != len(w.gone) {
			t.Fatalf("seed %d: %d deletes are told, want %d", seed, n, len(w.gone))
		}
	}
}

// TestAPageProvesTheOrder by the token of a server that reads a range of etcd's keys.
func TestAPageProvesTheOrder(t *testing.T) {
	all := change.Stream{}
	one := change.Stream{Namespace: "n"}
	for _, c := range []struct {
		token, last string
		stream      change.Stream
		want        bool
	}{
		{rangeToken(7, "n/b"), "n/b", all, true},
		{rangeToken(7, "n/c"), "n/b", all, true}, // a selector left something out
		{rangeToken(7, "b"), "n/b", one, true},
		{rangeToken(7, "n/a"), "n/b", all, false},
		{rangeToken(7, "n/b"), "", all, false},
		{"3", "n/b", all, false},
		{"", "n/b", all, false},
	} {
		if got := isRange(c.token, c.stream.Namespace, []byte(c.last)); got != c.want {
			t.Errorf("token %q behind %q: %t, want %t", c.token, c.last, got, c.want)
		}
	}
}
