package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// lastTold is what a sink says of an object last.
type lastTold struct {
	uid, version string
	gap, gone    bool
}

// fold is what a consumer that keeps states has.
func (a *tenant) fold(sink *follower) map[string]lastTold {
	a.t.Helper()
	fold := map[string]lastTold{}
	for _, e := range sink.all(a.t) {
		told := lastTold{uid: e.UID, version: e.ResourceVersion}
		switch e.op() {
		case "added", "updated", "replaced", "sync":
		case "deleted":
			told.gone = true
		case "gap":
			told.gap = true
		default:
			continue
		}
		if e.Name == "" {
			continue
		}
		key := foldKey(e.kind(), e.Namespace, e.Name)
		fold[key] = told
	}
	maps.DeleteFunc(fold, func(_ string, last lastTold) bool { return last.gone })
	return fold
}

// foldKey is the same for a name and for what a note has of it, where it is too long.
func foldKey(kind, namespace, name string) string {
	if !strings.HasPrefix(name, hashedPrefix) {
		name = hashedName(name)
	}
	return kind + " " + joined(namespace, name)
}

// judge folds the sink, compares it with the API server, and returns how many objects a gap stands for.
func (a *tenant) judge(sink *follower) (gaps int) {
	a.t.Helper()
	fold := a.fold(sink)
	for _, resource := range a.r.resources() {
		kind := kubectlName(resource)
		a.r.eachListed(resource, func(object *unstructured.Unstructured) {
			key := foldKey(kind, object.GetNamespace(), object.GetName())
			have, known := fold[key]
			delete(fold, key)
			if have.gap {
				gaps++
			}
			switch name := joined(object.GetNamespace(), object.GetName()); {
			case !known:
				a.t.Errorf("sink %s does not have %s %.120q", sink.name, kind, name)
			case have.version != object.GetResourceVersion() || have.uid != string(object.GetUID()):
				a.t.Errorf("sink %s has %s %.120q %+v, the API server %s at %s", sink.name, kind, name, have, object.GetUID(), object.GetResourceVersion())
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

// hashedPrefix is how what a note has of a name begins that is too long.
const hashedPrefix = "%sha256-"

func hashedName(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hashedPrefix + hex.EncodeToString(sum[:])
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
