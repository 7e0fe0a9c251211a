package badinput

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestI1I4FullDiskWhileASinkIsSpooledFor: the exporter lives and says what is missing; with space again everything goes
// to disk, and to the sink when that is back.
func TestI1I4FullDiskWhileASinkIsSpooledFor(t *testing.T) {
	d, namespace := newDesk(t), newNamespace(t)
	d.smallDisk("state", "96m")
	b := startBroker(t)
	d.write("config.yaml", `resources: [{resource: configmaps, namespaces: [`+namespace+`]}]
sinks:
  - {name: bus, nats: {url: "`+b.URL()+`"}, queue: {records: 4, full: spool}}
  - {name: file, file: {path: out.ndjson}}
`)
	r := d.runs()
	createConfigMap(t, namespace, "first")
	eventually(t, "the first one is saved", func() bool {
		return len(b.told(namespace)) == 1 && r.status().Streams[namespace+"/configmaps"].ResourceVersion != ""
	})
	b.Stop()
	d.allocate("state/filler", 60<<20)
	const objects = 20
	for i := range objects {
		createConfigMap(t, namespace, fmt.Sprint("unsaved-", i))
	}
	r.logs("state not saved; retrying")
	if said := r.status().State.LastError; !fullDisk.MatchString(said) {
		t.Errorf("/statusz says %q", said)
	}
	if health := r.get("/healthz"); health != "ok\n" {
		t.Errorf("/healthz says %q, and a restart would not help", health)
	}
	if err := os.Remove(d.path("state/filler")); err != nil {
		t.Fatal(err)
	}
	d.delivers("out.ndjson", fmt.Sprint("/configmaps/unsaved-", objects-1))
	eventually(t, "the state is saved", func() bool { return r.status().State.LastError == "" })
	b.Restart(t)
	eventually(t, "the sink has everything", func() bool { return len(b.told(namespace)) > objects })
	r.stopsWell()
	want := []string{"first"}
	for i := range objects {
		want = append(want, fmt.Sprint("unsaved-", i))
	}
	if got := b.told(namespace); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("the sink was told of\n%s, want\n%s", got, want)
	}
}

// told are the names of the namespace's ConfigMaps in the stream, in its order; none where nobody answers.
func (b *broker) told(namespace string) (names []string) {
	b.t.Helper()
	js := b.jetstream()
	stream, err := js.Stream(b.t.Context(), "K8S_dev")
	if err != nil {
		return nil
	}
	last := stream.CachedInfo().State.LastSeq
	for seq := uint64(1); seq <= last; seq++ {
		message, err := stream.GetMsg(b.t.Context(), seq)
		if err != nil {
			b.t.Fatal(err)
		}
		if name, found := strings.CutPrefix(message.Subject, "k8s.dev.core.configmaps."+namespace+"."); found && name != "-" {
			names = append(names, name)
		}
	}
	return names
}
