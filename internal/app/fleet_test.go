package app

import (
	"context"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/config"
)

// TestOfTwoNamesOfOneClusterTheFirstIsFollowed, whichever comes first.
func TestOfTwoNamesOfOneClusterTheFirstIsFollowed(t *testing.T) {
	attempt, cut := context.WithCancelCause(t.Context())
	first, second := config.Task{Cluster: config.ClusterOf{Name: "first"}}, config.Task{Cluster: config.ClusterOf{Name: "second"}}
	f := &fleet{
		wanted:  []config.Task{first, second},
		members: map[string]*follower{"first": {Task: first}, "second": {Task: second, cut: cut}},
	}
	for _, step := range []struct{ name, uid, want string }{
		{"second", "u", ""}, {"second", "u", ""}, {"first", "u", ""}, {"second", "u", "cluster second is cluster first (uid u)"}, {"second", "v", ""},
	} {
		err := f.claim(step.name, step.uid)
		if err == nil != (step.want == "") || err != nil && !strings.Contains(err.Error(), step.want) {
			t.Errorf("%s of uid %s: %v, want %q", step.name, step.uid, err, step.want)
		}
	}
	if cause := context.Cause(attempt); cause == nil || !strings.Contains(cause.Error(), "cluster second is cluster first") {
		t.Errorf("the second one has ended for %v", cause)
	}
}
