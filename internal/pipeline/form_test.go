package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// TestI9WhatLiesOnDiskIsShapedByTodaysRules: they may be stricter than when it was put there. What cannot be shaped is
// a gap for its key, and of a delete its last state alone is left out.
func TestI9WhatLiesOnDiskIsShapedByTodaysRules(t *testing.T) {
	target := &memory{}
	r := newRig(t, spooling("s", target, 4))
	target.hang()
	if err := r.life(func(line *Inlet) {
		for i := 1; i <= 30; i += 3 {
			for n, name := range []string{"shaped", "odd", "gone"} {
				rec := update(pods(), name, i+n)
				rec.Object, rec.Before = []byte(`{"p":"bare"}`), []byte(`{"p":"bare too"}`)
				if name == "gone" {
					rec.Op = change.Deleted
				}
				r.push(line, rec)
			}
		}
		r.drain(line, pods()) // to disk: the sink takes nothing
	}); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var values []string
	target.fault = func(_ context.Context, batch []sink.Message) error {
		mu.Lock()
		defer mu.Unlock()
		for _, m := range batch {
			values = append(values, string(m.Value))
		}
		return nil
	}
	r.config.Reshape = func(rec *change.Record) error {
		if rec.Key.Name != "shaped" {
			return errors.New("these rules do not fit")
		}
		rec.Object, rec.Before = bytes.ReplaceAll(rec.Object, []byte("bare"), []byte("hash")), nil
		return nil
	}
	if err := r.life(func(*Inlet) {
		r.await("the last", func() bool { return strings.HasSuffix(target.short(), "gone/30/deleted") })
	}); err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := 1; i <= 30; i += 3 {
		want = append(want, fmt.Sprintf("shaped/%d/updated odd/%d/gap gone/%d/deleted", i, i+1, i+2))
	}
	if target.short() != strings.Join(want, " ") {
		t.Errorf("the log is %s", target.short())
	}
	all := strings.Join(values, "\n")
	if strings.Contains(all, "bare") || strings.Count(all, `"p":"hash"`) != 10 || strings.Count(all, `"rejected":"redaction"`) != 10 {
		t.Errorf("the sink was given\n%s", all)
	}
}
