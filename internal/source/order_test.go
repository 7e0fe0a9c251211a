package source

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// TestI4AnUnsortedListOfTwoVersionsIsAsOldAsItsOldestPage: the server goes on at a newer version where it has forgotten
// the list's. What was made between the two may belong to a page of the older one, and what was deleted between them the
// watch will tell of.
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
		r.want("lake", "deleted c 200", "added z 250", "sync a 10 last", "snapshot.end 100 requested")
	})
}

// TestI4APageThatIsReadAgainMayEndBeforeWhereItWas, since it is smaller then, or its list has begun anew: what follows
// was sent up to there, and is not out of order.
func TestI4APageThatIsReadAgainMayEndBeforeWhereItWas(t *testing.T) {
	play(t, 100, func(r *rig) {
		names := many(3 * turnObjects)
		r.exist("lake", 100, names...)
		lists := 0
		r.server.answer = func(kind string, q url.Values) *http.Response {
			if kind != "list" {
				return nil
			}
			if lists++; lists == 1 { // it breaks off
				page := pageOf(100, "", items(names[:2*turnObjects]...)...)
				text, _ := io.ReadAll(page.Body)
				cut := strings.NewReader(string(text[:len(text)-2]))
				page.Body = io.NopCloser(io.MultiReader(cut, iotest.ErrReader(io.ErrUnexpectedEOF)))
				return page
			}
			r.server.pageSize = turnObjects / 2
			return nil
		}
		r.start("lake")
		r.ask("lake", change.Requested, change.Limits{})
		r.pass(time.Minute)
		want := []string{"snapshot.begin 100 requested"}
		for _, name := range names {
			want = append(want, "sync "+name)
		}
		want[len(want)-1] += " last"
		r.want("lake", append(want, "snapshot.end 100 requested")...)
		if r.informer.all()[0].origin.unsorted.Load() {
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
