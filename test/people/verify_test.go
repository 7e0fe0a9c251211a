package people

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// verdict is what verify says of one sink, as far as a test looks.
type verdict struct {
	Sink             string
	Equal, Undecided bool
	Records          int
	Streams          []struct {
		Stream                                                             string
		Objects, Equal, Missing, Stale, Extra, Changing, Unjudged, Records int
		Differences                                                        []struct{ Kind, Namespace, Name string }
	}
}

func (o outcome) verdicts(t *testing.T) map[string]verdict {
	t.Helper()
	all := map[string]verdict{}
	for line := range strings.Lines(o.Stdout) {
		var v verdict
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		all[v.Sink] = v
	}
	return all
}

// said are the differences of a verdict in short.
func (v *verdict) said() string {
	var all []string
	for _, s := range v.Streams {
		for _, d := range s.Differences {
			all = append(all, d.Kind+" "+d.Name)
		}
	}
	return strings.Join(all, ", ")
}

// planted is what plantAll plants, in the order of the keys.
const planted = "missing cut, extra ghost, extra gone, stale old"

// TestVerifyFindsWhatIsPlanted in each kind of sink and each format, and says equal with counts before.
func TestVerifyFindsWhatIsPlanted(t *testing.T) {
	r := newRig(t, "planted")
	r.startNATS()
	r.kafka = brokers.Get(t)
	sinks := map[string]string{
		"file":   fmt.Sprintf("file: {path: %q, rotate: 4Ki}", r.path("out.ndjson")),
		"deb":    fmt.Sprintf("file: {path: %q}, format: debezium", r.path("deb.ndjson")),
		"bus":    fmt.Sprintf("nats: {url: %q, stream: K8S}", r.nats),
		"binary": fmt.Sprintf(`nats: {url: %q, stream: BIN, subject: "bin.{cluster}.{resource}.{namespace}.{name}"}, format: cloudevents-binary`, r.nats),
		"bucket": fmt.Sprintf("nats: {url: %q, kv: NOW}", r.nats),
		"lake":   fmt.Sprintf(`kafka: {brokers: [%q], partitions: 3}`, r.kafka.Brokers()[0]),
		"tx":     fmt.Sprintf(`kafka: {brokers: [%q], topic: "tx.{cluster}.{resource}", delivery: transactional}, format: object`, r.kafka.Brokers()[0]),
	}
	if !r.kafka.Real() {
		delete(sinks, "tx")
	}
	var lines []string
	for name, text := range sinks {
		lines = append(lines, fmt.Sprintf("  - {name: %s, %s}", name, text))
	}
	r.configure("config.yaml", r.resource("configmaps", "")+"\n"+r.resource("secrets", ""), strings.Join(lines, "\n"))
	for _, name := range []string{"same", "old", "cut", "gone"} {
		r.put(name, strings.Repeat("x", 400))
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "login"}, StringData: map[string]string{"password": "hidden"}}
	if _, err := r.client.CoreV1().Secrets(r.namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r.start()
	for i := range 20 {
		r.put("old", fmt.Sprint(i))
	}
	r.remove("gone")
	r.equal("verify", "-f", r.path("config.yaml"), "-o", "json", "--timeout", "1m")
	r.stop()
	for name, v := range r.equal("verify", "-f", r.path("config.yaml"), "-o", "json").verdicts(t) {
		if n := v.Streams[0].Objects + v.Streams[1].Objects; n != 4 || v.Records < 8 && name != "bucket" {
			t.Errorf("sink %s: %d objects of %d records are equal, want 4 of more", name, n, v.Records)
		}
	}
	shelves := map[string]*shelf{
		"file": fileShelf(t, r.path("out.ndjson")), "deb": fileShelf(t, r.path("deb.ndjson")),
		"bus": streamShelf(t, r.nats, "K8S"), "binary": streamShelf(t, r.nats, "BIN"), "bucket": streamShelf(t, r.nats, "KV_NOW"),
		"lake": topicShelf(t, r.kafka, "k8s.planted.configmaps"),
	}
	if r.kafka.Real() {
		shelves["tx"] = topicShelf(t, r.kafka, "tx.planted.configmaps")
	}
	for name, s := range shelves {
		if name == "file" {
			s.records = fileShelf(t, r.path("deb.ndjson")).records
		}
		s.plantAll(t)
	}
	o := r.run("verify", "-f", r.path("config.yaml"), "-o", "json")
	want := fmt.Sprintf("exporter: verify found %d differences\n", 4*len(sinks))
	if o.Code != 1 || o.Stderr != want {
		t.Errorf("exit code %d and %q, want 1 and %q", o.Code, o.Stderr, want)
	}
	for name := range sinks {
		v := o.verdicts(t)[name]
		if said := v.said(); said != planted || v.Equal || v.Undecided {
			t.Errorf("sink %s: found %s, want %s", name, said, planted)
		}
	}
	r.textOf(t)
}

// textOf reads what a person reads.
func (r *rig) textOf(t *testing.T) {
	t.Helper()
	o := r.run("verify", "-f", r.path("config.yaml"), "--sink", "bus", "--resources", "configmaps")
	for _, want := range []string{"sink bus (nats): ", "STREAM", "planted/configmaps", "missing  planted/configmaps  planted/cut", "extra    planted/configmaps  planted/ghost"} {
		if !strings.Contains(o.Stdout, want) {
			t.Errorf("the text has no %q:\n%s", want, o.Stdout)
		}
	}
	t.Logf("verify says:\n%s%s", o.Stdout, o.Stderr)
	if o = r.run("verify", "-f", r.path("config.yaml"), "--resources", "secrets"); o.Code != 0 || strings.Count(o.Stdout, "equal: 1 objects\n") < 6 {
		t.Errorf("secrets differ, exit code %d: %s%s", o.Code, o.Stdout, o.Stderr)
	}
}

// equal runs verify, which must find nothing.
func (r *rig) equal(args ...string) outcome {
	r.t.Helper()
	o := r.run(args...)
	if o.Code != 0 || o.Stderr != "" {
		r.t.Errorf("verify ends with code %d: %s%s", o.Code, o.Stdout, o.Stderr)
	}
	return o
}

// TestVerifyTellsNoFalseDifferences while the cluster changes all the time, and finds what is planted all the same.
func TestVerifyTellsNoFalseDifferences(t *testing.T) {
	r := newRig(t, "moving")
	r.startNATS()
	r.configure("config.yaml", r.resource("configmaps", ""), fmt.Sprintf(
		"  - {name: file, file: {path: %q}}\n  - {name: bus, nats: {url: %q, stream: K8S}}\n  - {name: bucket, nats: {url: %q, kv: NOW}}", r.path("out.ndjson"), r.nats, r.nats))
	for _, name := range []string{"same", "old", "cut", "gone"} {
		r.put(name, "x")
	}
	r.start()
	r.put("old", "y")
	r.remove("gone")
	r.equal("verify", "-f", r.path("config.yaml"), "--timeout", "1m")
	ctx, stop := context.WithCancel(t.Context())
	var writer sync.WaitGroup
	defer writer.Wait()
	defer stop()
	writer.Go(func() { r.disturb(ctx) })
	changing := 0
	for range 4 {
		for _, v := range r.equal("verify", "-f", r.path("config.yaml"), "-o", "json", "--timeout", "1m").verdicts(t) {
			changing += v.Streams[0].Changing
		}
	}
	t.Logf("%d objects had changed since their list", changing)
	// A copy of the file has the same exporter behind it, and so the same proof.
	text, err := os.ReadFile(r.path("out.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	r.write("copy.ndjson", string(text[:strings.LastIndex(string(text), "\n")+1]))
	stop()
	writer.Wait()
	r.configure("copied.yaml", r.resource("configmaps", ""), fmt.Sprintf("  - {name: file, file: {path: %q}}", r.path("out.ndjson")))
	r.equal("verify", "-f", r.path("copied.yaml"), "--timeout", "1m")
	text, err = os.ReadFile(r.path("out.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	r.write("copy.ndjson", string(text))
	fileShelf(t, r.path("copy.ndjson")).plantAll(t)
	r.configure("copied.yaml", r.resource("configmaps", ""), fmt.Sprintf("  - {name: file, file: {path: %q}}", r.path("copy.ndjson")))
	o := r.run("verify", "-f", r.path("copied.yaml"), "-o", "json", "--timeout", "1m")
	v := o.verdicts(t)["file"]
	if said := v.said(); o.Code != 1 || said != planted {
		t.Errorf("found %s with code %d, want %s\n%s%s", said, o.Code, planted, o.Stdout, o.Stderr)
	}
}

// disturb makes, changes and deletes config maps until the context ends.
func (r *rig) disturb(ctx context.Context) {
	maps := r.client.CoreV1().ConfigMaps(r.namespace)
	for i := 0; ctx.Err() == nil; i++ {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("m-%d", i%40)}, Data: map[string]string{"i": fmt.Sprint(i)}}
		var err error
		switch _, err = maps.Update(ctx, object, metav1.UpdateOptions{}); {
		case err != nil:
			_, err = maps.Create(ctx, object, metav1.CreateOptions{})
		case i%7 == 0:
			err = maps.Delete(ctx, object.Name, metav1.DeleteOptions{})
		}
		if err != nil && ctx.Err() == nil {
			r.t.Errorf("disturb: %v", err)
			return
		}
	}
}

// TestVerifyTakesFiltersAndOpsIntoAccount: what they keep back is not missing, and what they leave behind is not extra.
func TestVerifyTakesFiltersAndOpsIntoAccount(t *testing.T) {
	r := newRig(t, "filtered")
	r.configure("config.yaml", r.resource("configmaps", `, filter: 'object.data.key != "no"', drop: [.data]`)+"\n"+r.resource("serviceaccounts", ", ops: [added, updated]"),
		fmt.Sprintf("  - {name: file, file: {path: %q}}", r.path("out.ndjson")))
	r.put("a", "yes")
	r.put("b", "no")
	r.put("c", "yes")
	accounts := r.client.CoreV1().ServiceAccounts(r.namespace)
	for _, name := range []string{"kept", "removed"} {
		if _, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	r.start()
	r.equal("verify", "-f", r.path("config.yaml"), "--timeout", "1m")
	r.put("c", "no")
	if err := accounts.Delete(t.Context(), "removed", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.put("d", "yes")
	v := r.equal("verify", "-f", r.path("config.yaml"), "-o", "json", "--timeout", "1m").verdicts(t)["file"]
	got := ""
	for _, s := range v.Streams {
		got += fmt.Sprintf("%s: %d objects, %d equal, %d unjudged; ", s.Stream, s.Objects, s.Equal, s.Unjudged)
	}
	if want := "filtered/configmaps: 4 objects, 2 equal, 2 unjudged; filtered/serviceaccounts: 1 objects, 1 equal, 1 unjudged; "; got != want {
		t.Errorf("found %s\nwant  %s", got, want)
	}
}

// TestVerifyWithoutAnExporter waits, and says that nobody could prove what it found.
func TestVerifyWithoutAnExporter(t *testing.T) {
	r := newRig(t, "nobody")
	r.put("a", "x")
	r.write("out.ndjson", "")
	began := time.Now()
	o := r.run("verify", "--resources", "configmaps", "--sink", "file://"+r.path("out.ndjson"), "--state-dir", r.path("state"), "--timeout", "1s")
	if o.Code != 1 || !strings.Contains(o.Stdout, "note: no exporter's state was found, so the differences are what was there all of 1s") || !strings.Contains(o.Stdout, "missing  configmaps  nobody/a") {
		t.Errorf("exit code %d: %s%s", o.Code, o.Stdout, o.Stderr)
	}
	if waited := time.Since(began); waited < time.Second {
		t.Errorf("verify waited %s, want 1s or more", waited)
	}
}

func TestVerifyCannotCompare(t *testing.T) {
	r := newRig(t, "refused")
	r.configure("config.yaml", r.resource("configmaps", ""), "  - {name: out, file: {path: \"-\"}}\n  - {name: bus, nats: {url: \"nats://127.0.0.1:1\"}}")
	for _, c := range []struct{ args, want string }{
		{"--sink out", "exporter: sink out: standard output cannot be read back: choose another sink\n"},
		{"--sink bus", "exporter: sink bus: connect to nats://127.0.0.1:1: "},
		{"--sink sea", "exporter: --sink \"sea\": the configuration has no such sink: it has out, bus\n"},
		{"--resources pods", "exporter: --resources: no stream of \"pods\"; "},
		{"-o yaml", "exporter: --output \"yaml\": want text or json\n"},
	} {
		o := r.run(append([]string{"verify", "-f", r.path("config.yaml")}, strings.Fields(c.args)...)...)
		if o.Code != 2 || !strings.HasPrefix(o.Stderr, c.want) {
			t.Errorf("%s: exit code %d and %q, want 2 and %q", c.args, o.Code, o.Stderr, c.want)
		}
	}
}

// TestVerifyAndTailReadTopicsThatLabelsChose, also those of objects that went on in another one.
func TestVerifyAndTailReadTopicsThatLabelsChose(t *testing.T) {
	r := newRig(t, "labelled")
	r.kafka = brokers.Get(t)
	r.configure("config.yaml", r.resource("configmaps", ""), fmt.Sprintf(
		`  - {name: lake, kafka: {brokers: [%q], topic: "t.{cluster}.{label:team}"}}`, r.kafka.Brokers()[0]))
	for i, team := range []string{"z", "m", "a"} {
		r.label(fmt.Sprint("moves-", i), team)
	}
	r.label("same", "z")
	r.start()
	// A change that overtakes the snapshot's object is told in its place, so the moves await the snapshot.
	r.equal("verify", "-f", r.path("config.yaml"), "--timeout", "1m")
	for i := range 3 {
		r.label("moves-1", []string{"b", "y", "a"}[i])
	}
	r.label("gone", "m")
	r.remove("gone")
	r.equal("verify", "-f", r.path("config.yaml"), "--timeout", "1m")
	o := r.run("tail", "-f", r.path("config.yaml"), "--since", "start", "--follow=false", "--name", "moves-1", "--diff")
	if o.Code != 0 || strings.Count(o.Stdout, "labelled/moves-1") != 4 {
		t.Errorf("tail ends with code %d, want four records of one object in four topics: %s%s", o.Code, o.Stdout, o.Stderr)
	}
	if moves := regexp.MustCompile(`team: .*`).FindAllString(o.Stdout, -1); !slices.Equal(moves, []string{`team: "m" -> "b"`, `team: "b" -> "y"`, `team: "y" -> "a"`}) {
		t.Errorf("tail shows the moves %q: %s", moves, o.Stdout)
	}
	topicShelf(t, r.kafka, "t.labelled.z").forge(t, "ghost", "", "added")
	if o = r.run("verify", "-f", r.path("config.yaml")); o.Code != 1 || !strings.Contains(o.Stdout, "labelled/ghost") {
		t.Errorf("a planted record is not found, exit code %d: %s%s", o.Code, o.Stdout, o.Stderr)
	}
}

// label makes or changes a config map with the team.
func (r *rig) label(name, team string) {
	r.t.Helper()
	maps := r.client.CoreV1().ConfigMaps(r.namespace)
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": team}}}
	_, err := maps.Update(r.t.Context(), object, metav1.UpdateOptions{})
	if err != nil {
		_, err = maps.Create(r.t.Context(), object, metav1.CreateOptions{})
	}
	if err != nil {
		r.t.Fatal(err)
	}
}
