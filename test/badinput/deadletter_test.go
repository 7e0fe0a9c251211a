package badinput

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// createLarge makes a ConfigMap of so many bytes, of which half is in key cut.
func createLarge(t *testing.T, namespace, name string, size int) {
	t.Helper()
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Data:       map[string]string{"cut": strings.Repeat("x", size/2), "rest": strings.Repeat("y", size/2)},
	}
	if _, err := admin(t).CoreV1().ConfigMaps(namespace).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// narrowed is a desk whose exporter writes one namespace into a stream that takes messages of 10,000 bytes.
func narrowed(t *testing.T, keys string) (d *desk, namespace string) {
	t.Helper()
	d, namespace = newDesk(t), newNamespace(t)
	b := startBroker(t)
	if _, err := b.jetstream().CreateStream(t.Context(), jetstream.StreamConfig{Name: "K8S_dev", Subjects: []string{"k8s.>"}, MaxMsgSize: 10_000}); err != nil {
		t.Fatal(err)
	}
	d.write("config.yaml", `resources: [{resource: configmaps, namespaces: [`+namespace+`]}]
sinks:
  - {name: bus, nats: {url: "`+b.URL()+`"}`+keys+`}
`)
	return d, namespace
}

// runs starts the exporter with the configuration, and returns after its first snapshot: an object that is made before
// may be one of the snapshot, and not one that is added.
func (d *desk) runs() *running {
	d.t.Helper()
	r := d.start(usual("-f", "config.yaml", "--log-level", "info")...)
	r.logs("configmaps reason=initial")
	return r
}

var (
	refusal = regexp.MustCompile(`\nexporter: deliver to sink bus: \S+/configmaps \S+/huge, uid \S+, resourceVersion \d+, an object of \d+ bytes, is too large for the sink: ` +
		`publish \d+ bytes: stream K8S_dev takes 10000: raise its max_msg_size, or give sink bus oversize: deadletter or oversize: trim\n`)
	replayTable = regexp.MustCompile(`^ID +SINK +STREAM +OBJECT +RESOURCEVERSION +RESULT\n[0-9a-f]{20}  bus +\S+/configmaps  \S+/huge  \d+ +kept: rejected again: publish \d+ bytes: stream K8S_dev takes 10000: raise its max_msg_size\n$`)
	listTable   = regexp.MustCompile(`^ID +SINK +TIME +REASON +STREAM +OBJECT +RESOURCEVERSION +OP +BYTES\n[0-9a-f]{20}  bus   \S+Z  too_large  \S+/configmaps  \S+/huge  \d+ +added  \d+\n$`)
)

func TestObjectThatIsTooLargeEndsTheExporterThatIsToldSo(t *testing.T) {
	d, namespace := narrowed(t, ", oversize: reject")
	r := d.runs()
	createLarge(t, namespace, "huge", 20_000)
	<-r.exited
	if code := r.cmd.ProcessState.ExitCode(); code != 1 || !refusal.MatchString(r.out.String()) {
		t.Errorf("exit code %d:\n%s", code, r.out)
	}
	if _, err := os.Stat(d.path("state/deadletters")); err == nil {
		t.Error("it left a letter")
	}
}

func TestObjectIsTrimmed(t *testing.T) {
	d, namespace := narrowed(t, ", oversize: trim, trim: [.data.none, .data.cut, .data.rest]")
	r := d.runs()
	createLarge(t, namespace, "huge", 16_000)
	r.logs(`msg="record trimmed to fit into the sink" sink=bus resource=` + namespace + "/configmaps object=" + namespace + "/huge")
	if code := r.stop(); code != 0 || r.times("trimmed=.metadata.managedFields records=1\n")+r.times("trimmed=.data.cut records=1\n") != 1 || r.times("record rejected") != 0 {
		t.Errorf("exit code %d:\n%s", code, r.out)
	}
}

func TestPathThatCannotBeTrimmed(t *testing.T) {
	d, _ := narrowed(t, ", oversize: trim, trim: [.data..cut]")
	d.exporter(usual("-f", "config.yaml")...).fails(t, 2, `sink bus: trim path ".data..cut": a part is empty; .. is not supported`)
}

func TestDeadLetterCommands(t *testing.T) {
	d, namespace := narrowed(t, "")
	d.mkdir("empty")
	d.exporter("deadletter", "list", "--state-dir", "empty").prints(t, 0, "", "no dead letters\n")
	r := d.runs()
	d.exporter("deadletter", "replay", "--state-dir", "state").prints(t, 0, "", "no dead letters\n")
	createLarge(t, namespace, "huge", 20_000)
	r.logs(`msg="record rejected; a gap record stands in its place" sink=bus`)
	d.exporter("deadletter", "replay", "--state-dir", "state", "--sink", "x").fails(t, 2, `no sink "x"; there are: bus`)
	d.exporter("deadletter", "replay", "--state-dir", "state", "x").fails(t, 2, `no dead letter "x": see exporter deadletter list`)
	if list := d.exporter("deadletter", "list", "--state-dir", "state"); list.Code != 0 || !listTable.MatchString(list.Stdout) {
		t.Errorf("exit code %d: %s%s", list.Code, list.Stdout, list.Stderr)
	}
	if again := d.exporter("deadletter", "replay", "--state-dir", "state"); again.Code != 1 || !replayTable.MatchString(again.Stdout) || again.Stderr != "exporter: 1 of 1 letters are kept\n" {
		t.Errorf("exit code %d: %s%s", again.Code, again.Stdout, again.Stderr)
	}
	r.stopsWell()
	files, err := filepath.Glob(d.path("state/deadletters/bus/*.letter"))
	if err != nil || len(files) != 1 {
		t.Fatalf("letters are %q, %v", files, err)
	}
	if err := os.Truncate(files[0], 10); err != nil {
		t.Fatal(err)
	}
	const damaged = ": it is damaged: its first line is incomplete: unexpected EOF: delete the file, or restore it from a copy"
	name, _ := filepath.Rel(d.dir, files[0])
	d.exporter("deadletter", "list", "--state-dir", "state").fails(t, 1, "read dead letter "+name+damaged)
}
