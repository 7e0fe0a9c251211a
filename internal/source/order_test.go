package source

import (
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// TestI4AnUnsortedListOfTwoVersionsIsAsOldAsItsOldestPage: the server goes on at a newer version where it has forgotten
// the list's. What was made between the two may belong to a page of the older one, and what was deleted between them
// the watch will tell of.
func TestI4AnUnsortedListOfTwoVersionsIsAsOldAsItsOldestPage(t *testing.T) {
	play(t, 100, func(r *rig) {
		r.exist("lake", 100, "a 10", "b 20", "c 30", "d 40")
		half := make(chan struct{})
		r.server.answer = func(kind string, q url.Values) *http.Response {
			switch {
			case kind != "list":
				return nil
			case q.Get("continue") == "":
				return pageOf(100, "second", items("d 40", "b 20", "a 10")...)
			case q.Get("continue") == "second":
				<-half
				return reply(410, strings.Replace(expired, `"metadata":{}`, `"metadata":{"continue":"newer"}`, 1))
			}
			return pageOf(300, "", items("z 250")...)
		}
		r.start("lake")
		r.ask("lake", change.Requested, change.Limits{})
		r.pass(time.Second)
		r.do("aa 150")
		r.want("lake", "snapshot.begin 100 requested", "sync d 40", "sync b 20", "added aa 150")
		close(half)
		r.want("lake") // c may still be told of
		r.do("-c 200", "z 250", "=310")
		r.want("lake", "deleted c 200", "added z 250", "sync a 10 last", "snapshot.end 300 requested")
	})
}

// TestI4APageThatIsReadAgainMayEndBeforeWhereItWas, since it is smaller then, or its list has begun anew: what follows
// was sent up to there, and is not out of order.
func TestI4APageThatIsReadAgainMayEndBeforeWhereItWas(t *testing.T) {
	play(t, 100, func(r *rig) {
		names := many(3 * turnObjects)
		r.exist("lake", 100, names...)
		lists := 0
		r.answers("list", func(q url.Values) *http.Response {
			if lists++; lists == 1 { // it breaks off
				page := pageOf(100, "", items(names[:2*turnObjects]...)...)
				text, _ := io.ReadAll(page.Body)
				cut := strings.NewReader(string(text[:len(text)-2]))
				page.Body = io.NopCloser(io.MultiReader(cut, iotest.ErrReader(io.ErrUnexpectedEOF)))
				return page
			}
			r.server.pageSize = turnObjects / 2
			return nil
		})
		r.start("lake")
		r.ask("lake", change.Requested, change.Limits{})
		r.pass(time.Minute)
		want := []string{"snapshot.begin 100 requested"}
		for _, name := range names {
			want = append(want, "sync "+name)
		}
		want[len(want)-1] += " last"
		r.want("lake", append(want, "snapshot.end 100 requested")...)
		if r.informer.informers[0].origin.unsorted.Load() {
			t.Error("it is taken for a list without an order")
		}
	})
}

// many are objects.
func many(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("p%03d %d", i, i+1))
	}
	return names
}

// TestI4AListOfAnotherOrderTellsNothingFalse: the server lists by namespace and name, which is not the order of the
// joined keys, in pages with tokens of its own. Each life dies somewhere. What is gone is deleted once, what is new is
// told once, and nothing is deleted that is there.
func TestI4AListOfAnotherOrderTellsNothingFalse(t *testing.T) {
	for seed := range uint64(30) {
		play(t, 100, func(r *rig) {
			random := rand.New(rand.NewPCG(seed, 1))
			var listed, had []string
			var want [2]int // deletes, and objects that are new
			for i := range 1 + random.IntN(40) {
				name := fmt.Sprintf("%s/p%02d 10", []string{"a", "a-b", "a.b"}[random.IntN(3)], i)
				known, is := random.IntN(2) == 0, random.IntN(5) > 0
				if is {
					listed = append(listed, name)
				}
				if known {
					had = append(had, name)
				}
				switch {
				case known && !is:
					want[0]++
				case !known && is:
					want[1]++
				}
			}
			slices.SortFunc(listed, func(a, b string) int {
				x, y := keyOf(strings.Fields(a)[0]), keyOf(strings.Fields(b)[0])
				return cmp.Or(strings.Compare(x.Namespace, y.Namespace), strings.Compare(x.Name, y.Name))
			})
			lists, dies := 0, random.IntN(10)
			r.answers("list", func(q url.Values) *http.Response {
				from := number(q.Get("continue"))
				until, token := min(from+3, len(listed)), ""
				if until < len(listed) {
					token = fmt.Sprint(until)
				}
				if lists++; lists == dies {
					return reply(500, "{}")
				}
				return pageOf(100, token, items(listed[from:until]...)...)
			})
			r.has("lake", 90, had...)
			r.server.forget(100)
			r.start("lake")
			r.stop()
			r.start("lake")
			r.pass(time.Minute)
			got := strings.Join(r.log("lake").take(), "\n")
			if told := [2]int{strings.Count(got, "deleted"), strings.Count(got, "replaced")}; told != want {
				t.Fatalf("seed %d: %v deletes and objects are told, want %v:\n%s", seed, told, want, got)
			}
		})
	}
}

// TestAPageProvesTheOrder by the token of a server that reads a range of etcd's keys.
func TestAPageProvesTheOrder(t *testing.T) {
	for _, c := range []struct {
		token, last, namespace string
		want                   bool
	}{
		{rangeToken(7, "n/b"), "n/b", "", true},
		{rangeToken(7, "n/c"), "n/b", "", true}, // a selector left something out
		{rangeToken(7, "b"), "n/b", "n", true},
		{rangeToken(7, "n/a"), "n/b", "", false},
		{rangeToken(7, "n/b"), "", "", false},
		{"3", "n/b", "", false},
		{"", "n/b", "", false},
	} {
		if got := isRange(c.token, c.namespace, []byte(c.last)); got != c.want {
			t.Errorf("token %q behind %q: %t, want %t", c.token, c.last, got, c.want)
		}
	}
}
