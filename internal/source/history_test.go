package source

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// epochs are the histories that the ids of the sink's records name, each once.
func (r *rig) epochs(name string) (epochs []string) {
	for _, id := range r.log(name).ids {
		of, _, _ := strings.Cut(id, "/")
		if len(epochs) == 0 || epochs[len(epochs)-1] != of {
			epochs = append(epochs, of)
		}
	}
	return epochs
}

// replace makes another server stand at the address, or the same one after its etcd was restored.
func (r *rig) replace(uid string, version int, objects ...string) {
	r.server.mu.Lock()
	r.server.uid, r.server.version, r.server.history, r.server.objects = uid, version, nil, map[string]event{}
	for _, w := range r.server.watches {
		w.old = true
	}
	r.server.mu.Unlock()
	r.server.do(objects...)
}

// TestI4AnotherClusterBehindTheAddressIsAnEpoch, also where it stands further on than the old one did, and where the
// sink is asked for a snapshot: an exact list of the old position proves nothing in the new one. Nothing of it is
// drift, and no id is one of the history before. A restart goes on in it.
func TestI4AnotherClusterBehindTheAddressIsAnEpoch(t *testing.T) {
	for _, asked := range []bool{false, true} {
		play(t, 100, func(r *rig) {
			r.exist("lake", 100, "ours 90")
			r.start("lake")
			r.do("ours 101")
			r.pass(2 * maxAge)
			r.replace("epoch-2", 300, "theirs 40")
			if asked {
				r.ask("lake", change.Requested, change.Limits{})
				r.pass(time.Second)
			}
			r.server.cut()
			r.pass(40 * time.Second)
			r.do("theirs 301")
			r.stop()
			got := r.log("lake").take()
			if text := strings.Join(got, ", "); strings.Count(text, "gap 300 epoch, snapshot.begin 300 epoch") != 1 || strings.Count(text, "replaced theirs 40") != 1 ||
				strings.Count(text, "deleted ours 300 unseen last") != 1 || !strings.HasSuffix(text, "updated theirs 301") {
				t.Errorf("asked is %t, and told is %s", asked, text)
			}
			if len(r.drift) > 0 {
				t.Errorf("another cluster is told as drift: %q", r.drift)
			}
			r.server.do("theirs 302")
			r.start("lake")
			r.want("lake", "updated theirs 302")
			if all := r.epochs("lake"); len(all) != 2 || all[0] != "epoch-1" || !strings.HasPrefix(all[1], "epoch-2") {
				t.Errorf("the ids name the histories %q", all)
			}
		})
	}
}

// TestI4ARestoredEtcdThatHasOvertakenThePositionIsAnEpoch: behind a failure the server is asked for what was told last,
// at exactly its version. What is the same, or cannot be told, is none, and a watch that ends as it should asks
// nothing.
func TestI4ARestoredEtcdThatHasOvertakenThePositionIsAnEpoch(t *testing.T) {
	for name, c := range map[string]struct {
		told  string
		page  *http.Response // of the server then
		epoch bool
	}{
		"an older version":            {"a 110", pageOf(110, "", items("a 90")...), true},
		"another one at the position": {"a 110", pageOf(110, "", items("a 105")...), true},
		"never made":                  {"new 110", pageOf(110, ""), true},
		"another object":              {"a 110", pageOf(110, "", items("a 110 u2")...), true},
		"not deleted":                 {"-a 110", pageOf(110, "", items("a 90")...), true},
		"the same":                    {"a 110", pageOf(110, "", items("a 110")...), false},
		"deleted as it was told":      {"-a 110", pageOf(110, ""), false},
		"compacted":                   {"a 110", reply(410, expired), false},
		"not at that version":         {"a 110", pageOf(300, "", items("a 290")...), false},
	} {
		play(t, 100, func(r *rig) {
			r.exist("lake", 100, "a 90")
			r.start("lake")
			r.do(c.told)
			r.server.end()
			r.pass(time.Second)
			if asked := r.server.asked(); strings.Contains(asked, "look") {
				t.Errorf("%s: behind a watch that ended as it should it asked for %s", name, asked)
			}
			r.answers("look", func(url.Values) *http.Response { return c.page })
			r.server.cut()
			r.do("300")
			r.pass(time.Second)
			if asked := r.server.asked(); strings.Count(asked, "look") != 1 {
				t.Errorf("%s: it asked for %s, want one look", name, asked)
			}
			if got := strings.Join(r.log("lake").take(), ", "); strings.Contains(got, "gap 300 epoch") != c.epoch || !c.epoch && strings.Contains(got, "gap") {
				t.Errorf("%s: told is %s", name, got)
			}
		})
	}
}

// TestI4ABusyServerIsAskedAgainForItsHistory: a server that fails to answer proves nothing, and no watch begins before
// it has.
func TestI4ABusyServerIsAskedAgainForItsHistory(t *testing.T) {
	for name, failure := range map[string]func() *http.Response{
		"too many requests": func() *http.Response { return reply(http.StatusTooManyRequests, "busy") },
		"internal error":    func() *http.Response { return reply(http.StatusInternalServerError, "etcdserver: request timed out") },
		"cut":               func() *http.Response { return reply(http.StatusOK, `{"metadata":{"resourceVersion":"110"},"items":[`) },
	} {
		play(t, 100, func(r *rig) {
			r.exist("lake", 100, "a 90")
			r.start("lake")
			r.do("a 110")
			r.server.asked()
			looks := 0
			r.answers("look", func(url.Values) *http.Response {
				if looks++; looks < 3 {
					return failure()
				}
				return pageOf(110, "", items("a 90")...)
			})
			r.server.cut()
			r.do("300")
			r.pass(time.Minute)
			if asked := r.server.asked(); strings.Contains(asked[:strings.LastIndex(asked, "look")], "watch") {
				t.Errorf("%s: it asked for %s, want no watch before the last look", name, asked)
			}
			if got := strings.Join(r.log("lake").take(), ", "); !strings.Contains(got, "gap 300 epoch") || looks != 3 {
				t.Errorf("%s: it looked %d times, and told is %s", name, looks, got)
			}
		})
	}
}

// TestI4AnotherSelectionIsCompared.
func TestI4AnotherSelectionIsCompared(t *testing.T) {
	play(t, 100, func(r *rig) {
		r.exist("lake", 100, "a 90", "b 95")
		r.config = func(config *Config) { config.Selection.LabelSelector = "app=x" }
		r.answers("list", func(url.Values) *http.Response { return pageOf(100, "", items("a 90")...) })
		r.start("lake")
		r.want("lake", "snapshot.begin 100 stale", "deleted b 95 unseen last", "snapshot.end 100 stale")
	})
}

// TestSelectionGoesToTheServer, and limits are within it.
func TestSelectionGoesToTheServer(t *testing.T) {
	configured := Selection{LabelSelector: "a=b", FieldSelector: "status.phase=Running"}
	if got, want := configured.String(), "labels=a=b&fields=status.phase=Running"; got != want || (Selection{}).String() != "" {
		t.Errorf("selection is %q, want %q", got, want)
	}
	got := configured.within(change.Limits{Selector: "c in (d,e)", Name: "x,y=z\\"})
	if got.LabelSelector != "a=b,c in (d,e)" || got.FieldSelector != `status.phase=Running,metadata.name=x\,y\=z\\` {
		t.Errorf("selected is %+v", got)
	}
	if got := configured.within(change.Limits{Namespace: "n"}); got != configured {
		t.Errorf("selected is %+v", got)
	}
}
