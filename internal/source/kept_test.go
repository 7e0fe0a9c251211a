package source

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// keep makes the streams keep objects, and those that sink lake was told of be kept already. Updates to the versions do
// not matter.
func (r *rig) keep(objects []string, ignored ...string) {
	r.Helper()
	r.keepFor("lake", objects...)
	r.keeps(ignored...)
}

// keeps makes the streams keep objects.
func (r *rig) keeps(ignored ...string) {
	r.config = func(config *Config) {
		config.Kept = r.images.Images
		if len(ignored) > 0 {
			config.Ignore = func(rec *change.Record) bool {
				return strings.Contains(strings.Join(ignored, " "), rec.ResourceVersion+" behind "+versionOf(rec.Before))
			}
		}
	}
}

// keepFor keeps the objects for the sink that was told of them last.
func (r *rig) keepFor(sinkName string, objects ...string) {
	r.Helper()
	var kept []checkpoint.KeptObject
	for _, text := range objects {
		name, version, _ := parts(text)
		kept = append(kept, checkpoint.KeptObject{Stream: "pods", Key: keyOf(name), Image: change.Image{
			UID: "uid-" + name, Version: fmt.Sprint(version), Object: []byte(items(text)[0]), Sinks: []string{sinkName},
		}})
	}
	r.must(r.store.SaveSinks(nil, checkpoint.Spools{}, &checkpoint.Keeping{Objects: kept, Sinks: []string{"lake", "bus"}}))
}

// kept are the images of the object.
func (r *rig) kept(name string) change.Images {
	r.Helper()
	stream := pods()
	images, err := r.images.Images(&stream, keyOf(name))
	r.must(err)
	return images
}

// TestI3ADeleteIsToldOnceThoughAWatchBringsWhatWasBeforeIt: its server has lost the delete, and a list lacks the
// object. What the watch brings again is no news, also where objects are kept.
func TestI3ADeleteIsToldOnceThoughAWatchBringsWhatWasBeforeIt(t *testing.T) {
	play(t, 90, func(r *rig) {
		r.has("lake", 89, "a 90")
		r.keep([]string{"a 90"})
		r.server.do("a 90")
		r.answers("list", func(url.Values) *http.Response {
			return reply(200, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"90"},"items":[]}`)
		})
		for life, want := range [][]string{{"deleted a 90 unseen after 90 last"}, nil} {
			r.start("lake")
			r.ask("lake", change.Resync, change.Limits{})
			r.pass(time.Minute)
			r.want("lake", slices.Concat([]string{"snapshot.begin 89 resync"}, want, []string{"snapshot.end 90 resync"})...)
			if t.Failed() {
				t.Errorf("that is life %d", life)
			}
			r.stop()
		}
	})
}

// TestI5BehindAKillEachSinkGoesOnBehindWhatItWasTold: what the log of one says, and the saved state does not, the watch
// brings again. Between that and what is saved nothing that is ignored is told, to neither.
func TestI5BehindAKillEachSinkGoesOnBehindWhatItWasTold(t *testing.T) {
	play(t, 100, func(r *rig) {
		r.server.do("a 20", "a 91", "a 92", "a 93")
		for _, name := range []string{"lake", "bus"} {
			r.has(name, 90, "a 20")
		}
		r.keep([]string{"a 20"}, "91 behind 20", "93 behind 92")
		r.keepFor("bus", "a 20")
		stream := pods()
		before := change.Record{Stream: &stream, Op: change.Updated, Key: keyOf("a"), UID: "uid-a", ResourceVersion: "92", Epoch: "epoch-1"}
		r.log("bus").ids = []string{before.ID("epoch-1").String()}
		for range 2 {
			r.start("lake", "bus")
			r.stop()
		}
		r.want("lake", "updated a 92 after 20")
		r.want("bus")
		r.start("lake", "bus")
		r.do("a 101")
		r.want("lake", "updated a 101 after 92")
		r.want("bus", "updated a 101 after 92")
		if images := r.kept("a"); len(images) != 1 || len(images[0].Sinks) != 2 || images[0].Version != "101" {
			t.Errorf("kept is %s", images)
		}
	})
}

// TestI4WhatAWatchReplacesEndsAsAComparisonWouldTell: with the last state, and in the snapshot that is under way. A
// sink that was told nothing of an object hears of nothing before it.
func TestI4WhatAWatchReplacesEndsAsAComparisonWouldTell(t *testing.T) {
	play(t, 100, func(r *rig) {
		r.has("lake", 90, "a 20")
		r.keep([]string{"a 20"})
		r.keepFor("bus", "b 30")
		observed := r.config
		var ends []*change.Record
		r.config = func(config *Config) {
			observed(config)
			config.Observer.Received = func(rec *change.Record) {
				if rec.FinalStateUnknown {
					ends = append(ends, rec)
				}
			}
		}
		r.server.do("a 95 u2", "b 30")
		r.server.forget(100)
		answered := r.holdLists()
		r.start("lake")
		r.do("a 101 u2", "b 102")
		answered()
		r.want("lake", "gap 100 gone", "snapshot.begin 100 gone", "deleted a 100 unseen after 20", "updated a 101", "updated b 102",
			"snapshot.end 100 gone")
		if len(ends) != 1 || ends[0].Snapshot == nil || ends[0].Snapshot.Reason != change.Gone {
			t.Errorf("the ends that no watch told of are %+v", ends)
		}
		if images := r.kept("a"); len(images) != 1 || images[0].UID != "u2" || versionOf(images[0].Object) != "101" {
			t.Errorf("kept is %s", images)
		}
	})
}

// TestWhatIsKeptForRulesAloneIsNotTold.
func TestWhatIsKeptForRulesAloneIsNotTold(t *testing.T) {
	play(t, 100, func(r *rig) {
		r.exist("lake", 100, "a 20")
		r.keep([]string{"a 20"})
		kept := r.config
		r.config = func(config *Config) { kept(config); config.BeforeHidden = true }
		r.start("lake")
		r.do("a 101")
		r.want("lake", "updated a 101")
	})
}

// TestI4AnUpdateBesideASnapshotMayBeTheFirstOfTheObject: rules that tell of no updates learn so.
func TestI4AnUpdateBesideASnapshotMayBeTheFirstOfTheObject(t *testing.T) {
	play(t, 100, func(r *rig) {
		r.server.do("a 10", "b 20")
		r.config = func(config *Config) {
			config.Shape = func(rec *change.Record) {
				if rec.Op == change.Updated && !rec.DuringSnapshot {
					rec.Filtered, rec.Object = true, nil
				}
			}
		}
		answered := r.holdLists()
		r.start("lake")
		r.do("a 101")
		answered()
		r.want("lake", "snapshot.begin 100 initial", "updated a 101", "replaced b 20 last", "snapshot.end 100 initial")
		r.do("a 102", "c 103")
		r.want("lake", "added c 103")
	})
}

// TestI3WhatRulesLeaveLasts: the objects of a watch are read into the same memory where there are rules, and yet each
// record has its own, behind all others.
func TestI3WhatRulesLeaveLasts(t *testing.T) {
	play(t, 100, func(r *rig) {
		r.exist("lake", 100)
		var records []*change.Record
		r.config = func(config *Config) {
			config.Shape = func(rec *change.Record) {
				switch rec.Key.Name {
				case "b":
					rec.Object = append([]byte("cut "), rec.Object...)
				case "c":
					rec.Filtered, rec.Object = true, nil
				}
			}
			config.Observer.Received = func(rec *change.Record) { records = append(records, rec) }
		}
		r.start("lake")
		for i := range 40 {
			r.server.do(fmt.Sprintf("%c %d", 'a'+i%5, 101+i))
		}
		r.pass(time.Second)
		if len(records) != 40 {
			t.Fatalf("%d records were told", len(records))
		}
		for i, rec := range records {
			if !rec.Filtered && versionOf(rec.Object) != fmt.Sprint(101+i) || strings.HasPrefix(string(rec.Object), "cut ") != (rec.Key.Name == "b") {
				t.Errorf("%s %s has the object %q", rec.Key.Name, rec.ResourceVersion, rec.Object)
			}
		}
	})
}

// TestI4ADiskThatFailsInTheMiddleOfAPageDeletesNothing: the page is read again, and not the one behind it in its place,
// nor is a list that begins again taken for one without an order.
func TestI4ADiskThatFailsInTheMiddleOfAPageDeletesNothing(t *testing.T) {
	for _, name := range []string{"p000", "p001", "p005", "p006"} {
		play(t, 100, func(r *rig) {
			names := many(7)
			r.has("lake", 90, names...)
			r.keep(names)
			failed := false
			r.config = func(config *Config) {
				config.Kept = func(stream *change.Stream, key change.Key) (change.Images, error) {
					if key.Name == name && !failed {
						failed = true
						return nil, errors.New("the disk fails")
					}
					return r.images.Images(stream, key)
				}
			}
			r.server.do(names...)
			r.server.do("-p001 95", "-p005 96", "-p006 97", "p000 98", "100")
			r.server.forget(100)
			r.server.pageSize = 3
			r.start("lake")
			r.pass(time.Minute)
			r.want("lake", "gap 100 gone", "snapshot.begin 100 gone", "replaced p000 98 after 1", "deleted p001 2 unseen after 2",
				"deleted p005 6 unseen after 6", "deleted p006 7 unseen after 7 last", "snapshot.end 100 gone")
			if r.informer.informers[0].origin.unsorted.Load() {
				t.Errorf("%s: it is taken for a list without an order", name)
			}
		})
	}
}
