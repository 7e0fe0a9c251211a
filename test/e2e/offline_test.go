package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/test/program"
)

// provesItself has `exporter verify --offline` read both sinks, and then the file without a record that one of its
// digests is of: that is found, and named by its time. No API server need be there.
func (r *rig) provesItself() {
	r.t.Helper()
	verify := func(sink string) (said string, code int) {
		r.t.Helper()
		o := program.Run(r.t, deliveryLimit, exec.CommandContext(r.t.Context(), r.exporter.binary, "verify", "--offline",
			"--resources", strings.Join(r.names(), ","), "--sink", sink, "--kubeconfig", r.cluster.Kubeconfig(), "--context", r.world.context))
		return o.Stdout + o.Stderr, o.Code
	}
	for _, sink := range []string{"file://" + r.path(), "nats://" + r.broker.address() + "?stream=" + streamName} {
		said, code := verify(sink)
		r.t.Logf("%s", said)
		if code != 0 || strings.Contains(said, " 0 digests") || !strings.Contains(said, "all are equal") {
			r.t.Errorf("exporter verify --offline of %s ends with %d: %s", sink, code, said)
		}
	}
	text, err := os.ReadFile(r.path())
	if err != nil {
		r.t.Fatal(err)
	}
	lines := slices.Collect(strings.Lines(string(text)))
	out, at := r.proven(lines)
	damaged := filepath.Join(r.dir, "damaged.ndjson")
	if err := os.WriteFile(damaged, []byte(strings.Join(slices.Delete(lines, out, out+1), "")), 0o600); err != nil {
		r.t.Fatal(err)
	}
	if said, code := verify("file://" + damaged); code != 1 || !strings.Contains(said, "before "+at.Format(time.RFC3339Nano)) {
		r.t.Errorf("without a record before %s exporter verify --offline ends with %d: %s", at, code, said)
	}
}

// proven is the line of the newest change before something was resolved of which a later line has the digest, and when
// that was. It is not the first digest of the resource: a log may begin anywhere before that.
func (r *rig) proven(lines []string) (change int, at time.Time) {
	r.t.Helper()
	newest, before := map[string]int{}, map[string]int{} // by resource, and by resource and time
	first := map[string]int{}                            // by resource, the change before its first digest
	for number, line := range lines {
		var e struct {
			Type, Resource, UID string
			Data                struct {
				Time   time.Time
				Digest *struct{ Time time.Time }
			}
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			continue // an object's own time may be anything
		}
		switch digest := e.Data.Digest; {
		case e.UID != "":
			newest[e.Resource] = number
		case e.Type != "dev.kubecdc.resolved": // another frame
		default:
			before[e.Resource+e.Data.Time.String()] = newest[e.Resource]
			if digest == nil {
				continue
			}
			change := before[e.Resource+digest.Time.String()]
			if first[e.Resource] > 0 && change > first[e.Resource] {
				return change, digest.Time
			}
			if first[e.Resource] == 0 {
				first[e.Resource] = change
			}
		}
	}
	r.t.Fatal("no digest is of a change")
	return 0, at
}
