package check

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/observe/console"
)

// Two sinks of one configuration that write to the same place are found, whatever their names for it.
func TestCheckFindsSinksOnOnePlace(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Symlink(dir, filepath.Join(dir, "link")))
	file := filepath.Join(dir, "out.ndjson")
	must(t, os.WriteFile(file, nil, 0o600))
	for _, test := range []struct{ name, a, b, want string }{
		{"a file", "file: {path: " + file + "}", "file: {path: " + filepath.Join(dir, "link", "out.ndjson") + "}", "the same file " + file},
		{"two files", "file: {path: " + file + "}", "file: {path: " + file + ".2}", ""},
		{"standard output", "file: {path: '-'}", "file: {path: '-'}", ""},
		{"a stream", "nats: {url: 'nats://h', stream: S}", "nats: {url: 'nats://other:1,nats://h:4222', stream: S}", "the same stream S"},
		{"a stream of another server", "nats: {url: 'nats://h', stream: S}", "nats: {url: 'nats://h:4223', stream: S}", ""},
		{"a stream that both share", "nats: {url: 'nats://h', stream: S, shared: true}", "nats: {url: 'nats://h', stream: S, shared: true}", ""},
		{"a stream that one shares", "nats: {url: 'nats://h', stream: S, shared: true}", "nats: {url: 'nats://h', stream: S}", "the same stream S"},
		{"a stream of this host", "nats: {url: 'nats://localhost', stream: S}", "nats: {url: 'nats://127.0.0.1:4222', stream: S}", "the same stream S"},
		{"two streams with subjects of their own", "nats: {url: 'nats://h', stream: S, subject: 'a.{name}'}", "nats: {url: 'nats://h', stream: T, subject: 'b.{name}'}", ""},
		{"two streams with subjects of other lengths", "nats: {url: 'nats://h', stream: S, subject: 'a.{name}'}", "nats: {url: 'nats://h', stream: T, subject: 'a.{name}.{version}'}", ""},
		{"two streams of two servers", "nats: {url: 'nats://h', stream: S}", "nats: {url: 'nats://g', stream: T}", ""},
		{"a stream and a bucket", "nats: {url: 'nats://h', stream: S}", "nats: {url: 'nats://h', kv: B}", ""},
		{"a bucket", "nats: {url: 'nats://h', kv: B}", "nats: {url: 'nats://h', kv: B}", "the same bucket B"},
		{"a transactional id", "kafka: {brokers: ['h:9092'], topic: a, delivery: transactional, transactionalId: i}",
			"kafka: {brokers: ['h:9092'], topic: b, delivery: transactional, transactionalId: i}", "the same transactional id i"},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := "cluster: c\nresources: [{resource: pods}]\nstate: {dir: " + dir + "}\nsinks:\n- {name: one, " + test.a + "}\n- {name: two, " + test.b + "}\n"
			cfg, err := config.Parse("config.yaml", []byte(text), os.LookupEnv)
			must(t, err)
			var out bytes.Buffer
			r := report{out: &console.Findings{Out: &out}}
			checkPlaces(cfg, &cluster.Cluster{Name: "c"}, &r)
			switch told := out.String(); {
			case test.want == "" && told != "":
				t.Errorf("told %s", told)
			case test.want != "" && (!strings.Contains(told, "sinks one and two write to "+test.want+":") || !usage.Is(r.err())):
				t.Errorf("told %q, want %s", told, test.want)
			}
		})
	}
}

// Two streams of one server cannot take the same subjects: who gives each sink a stream of its own is told so before
// the server says it.
func TestCheckFindsSubjectsOfTwoStreams(t *testing.T) {
	for _, test := range []struct{ a, b, want string }{
		{"stream: S", "stream: T", "k8s.c.*.*.*.*"},
		{"stream: S, subject: 'a.{resource}.{name}'", "stream: T, subject: 'a.{name}.b'", "a.*.b"},
		{"stream: S, subject: 'a.{name}'", "stream: T, subject: 'b.{name}', subjects: {pods: 'a.{namespace}'}", "a.*"},
	} {
		text := "cluster: c\nresources: [pods]\nsinks:\n- {name: one, nats: {url: 'nats://h', " + test.a + "}}\n- {name: two, nats: {url: 'nats://h', " + test.b + "}}\n"
		cfg, err := config.Parse("config.yaml", []byte(text), os.LookupEnv)
		must(t, err)
		var out bytes.Buffer
		r := report{out: &console.Findings{Out: &out}}
		checkPlaces(cfg, &cluster.Cluster{Name: "c"}, &r)
		told := out.String()
		if !strings.Contains(told, "sinks one and two have two streams for the subject "+test.want+", ") || strings.Count(told, "\n") != 1 {
			t.Errorf("%s and %s: told %q, want %s", test.a, test.b, told, test.want)
		}
	}
}
