package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// lastTold is what a sink says of an object last.
type lastTold struct {
	uid, version string
	gap          bool
}

// fold is what a consumer that keeps states has.
func (a *tenant) fold(sink *follower) map[string]lastTold {
	a.t.Helper()
	fold := map[string]lastTold{}
	for _, e := range sink.all(a.t) {
		key := e.kind() + " " + e.key()
		switch e.op() {
		case "added", "updated", "replaced", "sync":
			fold[key] = lastTold{e.UID, e.ResourceVersion, false}
		case "deleted":
			delete(fold, key)
		case "gap":
			if e.Name != "" {
				fold[key] = lastTold{e.UID, e.ResourceVersion, true}
			}
		}
	}
	return fold
}

// judge folds the sink, compares it with the API server, and returns how many objects a gap stands for.
func (a *tenant) judge(sink *follower) (gaps int) {
	a.t.Helper()
	fold := a.fold(sink)
	for _, resource := range a.r.resources() {
		kind := kubectlName(resource)
		a.r.eachListed(resource, func(object *unstructured.Unstructured) {
			found := false
			for _, name := range []string{object.GetName(), hashedName(object.GetName())} {
				key := kind + " " + joined(object.GetNamespace(), name)
				have, known := fold[key]
				if delete(fold, key); !known {
					continue
				}
				found = true
				if have.gap {
					gaps++
				}
				if have.version != object.GetResourceVersion() || have.uid != string(object.GetUID()) {
					a.t.Errorf("sink %s has %.120q %s at %s, the API server at %s", sink.name, key, have.uid, have.version, object.GetResourceVersion())
				}
			}
			if !found {
				a.t.Errorf("sink %s does not have %s %.120q", sink.name, kind, joined(object.GetNamespace(), object.GetName()))
			}
		})
	}
	for key, have := range fold {
		if have.gap {
			continue // what it stood for is gone, and that it was never there was said
		}
		if kind, _, _ := strings.Cut(key, " "); a.r.streams(kind) {
			a.t.Errorf("sink %s has %.120q %+v, which is gone", sink.name, key, have)
		}
	}
	return gaps
}

// streams says whether the exporter streams the resource.
func (r *rig) streams(kind string) bool {
	for _, resource := range r.resources() {
		if kubectlName(resource) == kind {
			return true
		}
	}
	return false
}

// hashedName is what a note has of a name that is too long.
func hashedName(name string) string {
	sum := sha256.Sum256([]byte(name))
	return "%sha256-" + hex.EncodeToString(sum[:])
}

func (r *rig) followerNamed(name string) *follower {
	r.t.Helper()
	for _, sink := range r.sinks() {
		if sink.name == name {
			return sink
		}
	}
	r.t.Fatalf("no sink is called %s", name)
	return nil
}

// metricSum is the sum of all series of the metric that are of the sink.
func (x *exporter) metricSum(t *testing.T, metric, sink string) (sum float64) {
	t.Helper()
	for line := range strings.Lines(x.get(t, "/metrics")) {
		if strings.HasPrefix(line, metric+"{") && strings.Contains(line, `sink="`+sink+`"`) {
			var n float64
			if _, err := fmt.Sscan(line[strings.LastIndexByte(strings.TrimSpace(line), ' '):], &n); err == nil {
				sum += n
			}
		}
	}
	return sum
}
