package source

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// filterNames is a shape that lets no object pass whose name begins with x.
func filterNames(rec *change.Record) {
	if strings.HasPrefix(rec.Key.Name, "x") {
		rec.Filtered, rec.Object = true, nil
	}
}

func TestI3LastRecordOfASnapshotIsMarkedAndInItsPlace(t *testing.T) {
	for name, c := range map[string]struct {
		has, listed []string
		want        string
	}{
		"one":               {nil, []string{"a 1"}, "replaced a 1 last"},
		"none":              {[]string{"a 1"}, []string{"a 1"}, ""},
		"gone comes last":   {[]string{"b 1"}, []string{"a 1"}, "replaced a 1, deleted b 1 last"},
		"nobody's are last": {nil, []string{"a 1", "b 2", "xa 3", "xb 4"}, "replaced a 1, replaced b 2 last, replaced xa 3 to nobody, replaced xb 4 to nobody"},
		"nobody's between":  {nil, []string{"a 1", "xa 3", "z 4"}, "replaced a 1, replaced xa 3 to nobody, replaced z 4 last"},
		"all are nobody's":  {nil, []string{"xa 3", "xb 4"}, "replaced xa 3 to nobody, replaced xb 4 to nobody"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecorder(c.has...)
			r.shape = filterNames
			gone(t, r, c.listed...)
			r.wait(t, "snapshot.end 300 stale")
			want(t, "records", strings.ReplaceAll(toldLines(r), "\n", ", "), c.want)
		})
	}
}

// Each sink that is owed a full snapshot has a last record of its own, whatever the others are given.
func TestI3LastRecordIsEachSinksOwn(t *testing.T) {
	for last, want := range map[string]string{
		"same 20": "sync a 10 to lake, sync a 10 to bus, sync same 20 to lake last, sync same 20 to bus last",
		"same 21": "sync a 10 to lake, sync a 10 to bus, replaced same 21 last",
		"x 30":    "sync a 10 to lake last, sync a 10 to bus last, replaced x 30 to nobody, deleted same 20 to nobody",
	} {
		r := newRecorder("a 10", "same 20")
		r.shape = func(rec *change.Record) {
			if filterNames(rec); rec.Op == change.Deleted {
				rec.Filtered = true
			}
		}
		server := script(t, 300)
		server.list = func(url.Values) (int, string) { return http.StatusOK, podList(100, "", "a 10", last) }
		server.start(r, at(100)).Request(resync("lake", "bus")...)
		r.wait(t, "snapshot.end 100 resync to bus")
		if got := strings.ReplaceAll(toldLines(r), "\n", ", "); got != want {
			t.Errorf("%s: records are\n%s\nwant\n%s", last, got, want)
		}
	}
}

// A snapshot goes on after a page that fails, and repeats nothing.
func TestI4SnapshotGoesOnBehindAFailure(t *testing.T) {
	server := script(t, 300)
	failed := false
	server.list = func(q url.Values) (int, string) {
		switch {
		case q.Get("continue") == "":
			return http.StatusOK, podList(100, "next", "a 10", "drifted 25")
		case !failed:
			failed = true
			return http.StatusInternalServerError, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"boom","code":500}`
		}
		return http.StatusOK, podList(100, "", "z 30")
	}
	r := newRecorder("a 10", "drifted 20", "z 30")
	server.start(r, at(100)).Request(resync("lake")...)
	r.wait(t, "snapshot.end 100 resync to lake")
	want(t, "records", toldLines(r),
		"sync a 10 to lake", "replaced drifted 25", "sync z 30 to lake last")
	want(t, "drift", strings.Join(r.drift, "\n"), "replaced drifted 20 -> 25")
}

// A long tail of objects that nobody gets is not held back whole (I6).
func TestI6WhatIsHeldBackIsBounded(t *testing.T) {
	listed := []string{"a 1"}
	for i := range 3 * maxHeld {
		listed = append(listed, fmt.Sprintf("x%05d 1", i))
	}
	r := newRecorder()
	most := 0
	o := &output{line: r}
	o.Observer = NopObserver()
	o.Shape = filterNames
	d := &difference{out: o, parts: []*part{{}}}
	for _, text := range listed {
		name, _, _ := strings.Cut(text, " ")
		if err := d.hold(t.Context(), &change.Record{Stream: &change.Stream{}, Op: change.Replaced, Key: change.Key{Name: name}}); err != nil {
			t.Fatal(err)
		}
		most = max(most, len(d.held.records))
	}
	if err := d.releaseLast(t.Context()); err != nil {
		t.Fatal(err)
	}
	if most > maxHeld || len(r.told) != len(listed) || strings.Contains(toldLines(r), "last") {
		t.Errorf("held %d at most, %d of %d in line, the first is %q", most, len(r.told), len(listed), r.told[0])
	}
}

// TestI3ARecordIsHeldBackWhileItMayBeASinksLast: each line says how many go in line after a record, and which of those
// that are left are last in the end.
func TestI3ARecordIsHeldBackWhileItMayBeASinksLast(t *testing.T) {
	lake, bus := &part{owed: change.Owed{Sink: "lake"}}, &part{owed: change.Owed{Sink: "bus"}}
	for text, c := range map[string]struct {
		parts []*part
		goes  string
		last  string
	}{
		"all all":           {[]*part{{}}, "0 1", "all"},
		"all none all":      {[]*part{{}}, "0 0 2", "all"},
		"none none":         {[]*part{{}}, "0 0", ""},
		"lake bus lake":     {[]*part{lake, bus}, "0 0 1", "bus lake"},
		"lake bus all":      {[]*part{lake, bus}, "0 0 2", "all"},
		"all lake none bus": {[]*part{lake, bus}, "0 0 0 1", "lake bus"},
		"bus lake none":     {[]*part{lake}, "0 1 0", "lake"},
	} {
		var h held
		var goes, last []string
		for _, who := range strings.Fields(text) {
			rec := &change.Record{Sink: who, Filtered: who == "none"}
			if who == "all" || rec.Filtered {
				rec.Sink = ""
			}
			n := h.add(rec, c.parts)
			h.drop(n)
			goes = append(goes, strconv.Itoa(n))
		}
		h.mark(c.parts)
		for _, rec := range h.records {
			if rec.Last {
				last = append(last, cmp.Or(rec.Sink, "all"))
			}
		}
		want(t, text+": what goes", strings.Join(goes, " "), c.goes)
		want(t, text+": the last", strings.Join(last, " "), c.last)
	}
}
