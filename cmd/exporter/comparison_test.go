package main

import (
	"testing"

	"github.com/kubecdc/kubecdc/internal/app/selection"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/shape"
)

// TestVerifyJudgesOnlyWhatTheSinkMustHave: what a rule of the resource or of the sink may keep back is left open.
func TestVerifyJudgesOnlyWhatTheSinkMustHave(t *testing.T) {
	ops := func(names ...string) *shape.Shape {
		made, err := shape.New(shape.Options{Ops: names})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	for what, c := range map[string]struct {
		of             compared
		takes, deletes bool
	}{
		"no rules":                    {compared{}, true, true},
		"ops of the resource":         {compared{shape: ops("added", "updated")}, true, false},
		"ops of the sink":             {compared{own: ops("added", "updated")}, true, false},
		"updates alone":               {compared{own: ops("updated", "deleted")}, false, true},
		"two that leave nothing":      {compared{shape: ops("deleted"), own: ops("updated")}, false, false},
		"a filter of the sink":        {compared{open: true}, false, false},
		"a filter and ops of a sink":  {compared{open: true, own: ops("deleted")}, false, false},
		"a filter of the resource":    {compared{Selected: selection.Selected{Configured: &config.Resource{Filter: "true"}}}, true, false},
		"a filter, and the sink's op": {compared{Selected: selection.Selected{Configured: &config.Resource{Filter: "true"}}, own: ops("updated")}, false, false},
	} {
		if c.of.Configured == nil {
			c.of.Configured = &config.Resource{}
		}
		if got := c.of.takes(&change.Record{Object: []byte(`{}`)}); got != c.takes {
			t.Errorf("%s: the sink takes every version: %t", what, got)
		}
		if got := c.of.tellsDeletes(); got != c.deletes {
			t.Errorf("%s: the sink is told of every delete: %t", what, got)
		}
	}
}
