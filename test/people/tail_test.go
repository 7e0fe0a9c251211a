package people

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// following is a tail that runs.
type following struct {
	t     *testing.T
	lines chan string
}

// follow starts exporter tail, which ends with the test.
func (r *rig) follow(args ...string) *following {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	cmd := exec.CommandContext(ctx, exporter.Path(r.t), append([]string{"tail"}, args...)...)
	cmd.Env = []string{"HOME=" + r.dir, "PATH=/usr/bin:/bin", "KUBECONFIG=" + r.path("kubeconfig")}
	out, err := cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	f := &following{t: r.t, lines: make(chan string, 10_000)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			f.lines <- scanner.Text()
		}
	}()
	r.t.Cleanup(func() {
		cancel()
		<-done
		_ = cmd.Wait() // it was killed
	})
	return f
}

// await returns when a line holds all of the texts.
func (f *following) await(texts ...string) string {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), limit)
	defer cancel()
	var seen []string
	for {
		select {
		case line := <-f.lines:
			seen = append(seen, line)
			found := 0
			for _, text := range texts {
				if strings.Contains(line, text) {
					found++
				}
			}
			if found == len(texts) {
				return line
			}
		case <-ctx.Done():
			f.t.Fatalf("waited %s for a line with %q; there were:\n%s", limit, texts, strings.Join(seen, "\n"))
		}
	}
}

// TestTailFollowsEverySink, and the running exporter.
func TestTailFollowsEverySink(t *testing.T) {
	r := newRig(t, "followed")
	r.startNATS()
	r.kafka = brokers.Get(t)
	r.configure("config.yaml", r.resource("configmaps", "")+"\n"+r.resource("secrets", ", redact: none"), fmt.Sprintf(
		"  - {name: file, file: {path: %q}}\n  - {name: bus, nats: {url: %q, stream: K8S}, format: cloudevents-binary}\n  - {name: bucket, nats: {url: %q, kv: NOW}}\n  - {name: lake, kafka: {brokers: [%q]}, format: debezium}",
		r.path("out.ndjson"), r.nats, r.nats, r.kafka.Brokers()[0]))
	r.put("early", "1")
	r.start()
	r.equal("verify", "-f", r.path("config.yaml"), "--timeout", "1m") // so that the logs are there
	tails := map[string]*following{"exporter": r.follow("--state-dir", r.path("state"), "--since", "start")}
	for _, name := range []string{"file", "bus", "bucket", "lake"} {
		tails[name] = r.follow("-f", r.path("config.yaml"), "--sink", name, "--diff", "--since", "start", "-n", "followed")
	}
	for name, f := range tails {
		line := f.await("replaced", "configmaps", "followed/early")
		if strings.Contains(line, "\x1b") {
			t.Errorf("%s: colours go to what is no terminal: %q", name, line)
		}
	}
	r.put("early", "2")
	for name, f := range tails {
		f.await("updated", "followed/early")
		if name != "exporter" {
			f.await(`    data.key: "1" -> "2"`)
		}
	}
	secrets := r.client.CoreV1().Secrets(r.namespace)
	for i, value := range []string{"hidden-1", "hidden-2"} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "login"}, StringData: map[string]string{"password": value}}
		var err error
		if i == 0 {
			_, err = secrets.Create(t.Context(), secret, metav1.CreateOptions{})
		} else {
			_, err = secrets.Update(t.Context(), secret, metav1.UpdateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range tails { // a bucket has the last value alone, so each is awaited
			f.await([]string{"added", "updated"}[i], "secrets", "followed/login")
		}
	}
	for name, f := range tails {
		if name != "exporter" {
			f.await(`    data.password: "(redacted)" -> "(redacted)"`)
		}
	}
	r.remove("early")
	for _, f := range tails {
		f.await("deleted", "configmaps", "followed/early")
	}
	r.tailOnce(t)
}

// tailOnce reads to the end, filters, and writes JSON.
func (r *rig) tailOnce(t *testing.T) {
	t.Helper()
	for _, sink := range []string{"file", "bus", "lake"} {
		o := r.run("tail", "-f", r.path("config.yaml"), "--sink", sink, "--since", "start", "--follow=false", "-o", "json", "--resources", "configmaps", "--op", "added,deleted,updated", "--name", "ear*")
		var ops []string
		for line := range strings.Lines(o.Stdout) {
			var l struct{ Op, Resource, Namespace, Name, UID, ResourceVersion string }
			if err := json.Unmarshal([]byte(line), &l); err != nil || l.Resource != "configmaps" || l.Name != "early" || l.UID == "" || l.ResourceVersion == "" {
				t.Errorf("%s: %v in %s", sink, err, line)
			}
			ops = append(ops, l.Op)
		}
		if got := strings.Join(ops, " "); got != "updated deleted" || o.Code != 0 {
			t.Errorf("%s: found %q with code %d %s, want updated deleted", sink, got, o.Code, o.Stderr)
		}
	}
	o := r.run("tail", "--state-dir", r.path("state"), "--since", "start", "--follow=false", "--op", "deleted")
	if o.Code != 0 || strings.Count(o.Stdout, "\n") != 1 || !strings.Contains(o.Stdout, "followed/early") {
		t.Errorf("the exporter told %q with code %d %s", o.Stdout, o.Code, o.Stderr)
	}
	o = r.run("tail", "--sink", "file://"+r.path("out.ndjson"), "--since", "start", "--follow=false", "--diff", "-n", "followed")
	t.Logf("tail says:\n%s%s", o.Stdout, o.Stderr)
	for args, want := range map[string]string{
		"--diff":           "exporter: --diff needs a sink, ",
		"--op created":     "exporter: --op \"created\": want added, updated, ",
		"--since tomorrow": "exporter: --since \"tomorrow\": want a duration ",
		"--sink kafka://127.0.0.1:1?topic={resource}": "exporter: --resources is missing: ",
		"-f " + r.path("config.yaml"):                 "exporter: the configuration has several sinks: choose one of file, bus, bucket, lake with --sink\n",
	} {
		if o := r.run(append([]string{"tail"}, strings.Fields(args)...)...); o.Code != 2 || !strings.HasPrefix(o.Stderr, want) {
			t.Errorf("%s: code %d, %q, want 2 and %q", args, o.Code, o.Stderr, want)
		}
	}
}
