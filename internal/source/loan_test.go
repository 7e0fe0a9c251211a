package source

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// TestI3WhatRulesLeaveLasts: the objects of a watch are read into the same memory where there are rules, and yet each
// record has its own, after all others.
func TestI3WhatRulesLeaveLasts(t *testing.T) {
	server := script(t, 200)
	var frames, lines []string
	for i := range 40 {
		frames = append(frames, fmt.Sprintf("MODIFIED %c %d", 'a'+i%5, 101+i))
		lines = append(lines, fmt.Sprintf("updated %c %d", 'a'+i%5, 101+i))
	}
	server.watch = func(_ url.Values, w *watchWriter) {
		w.frames(frames...)
		w.hold()
	}
	r := newRecorder()
	r.shape = func(rec *change.Record) {
		switch rec.Key.Name {
		case "b":
			rec.Object = append([]byte("cut "), rec.Object...)
		case "c":
			rec.Filtered, rec.Object = true, nil
		}
	}
	server.start(r, at(100))
	r.wait(t, lines[len(lines)-1])
	for i, rec := range r.records {
		want := fmt.Sprintf(`"resourceVersion":"%d"`, 101+i)
		if got := string(rec.Object); !rec.Filtered && !strings.Contains(got, want) || strings.HasPrefix(got, "cut ") != (rec.Key.Name == "b") {
			t.Errorf("%s %s has the object %q", rec.Key.Name, rec.ResourceVersion, got)
		}
	}
}

// TestI4TwoStatesAtOneVersionRefuseAStreamWithRules as one without: what was read before is compared.
func TestI4TwoStatesAtOneVersionRefuseAStreamWithRules(t *testing.T) {
	server := script(t, 200)
	server.watch = func(_ url.Values, w *watchWriter) {
		w.frames("MODIFIED a 150", "MODIFIED b 150", "MODIFIED a 150", "MODIFIED d 150")
		fmt.Fprintln(w, strings.Replace(frameOf("MODIFIED a 150"), `"metadata"`, `"spec":{},"metadata"`, 1))
		w.frames("MODIFIED c 160")
		w.hold()
	}
	r := newRecorder("a 10")
	r.shape = func(*change.Record) {}
	server.start(r, at(100))
	want(t, "records", r.failed(t, "two states of the object"), "updated a 150", "updated b 150", "updated d 150", "gap 150 stale")
}
