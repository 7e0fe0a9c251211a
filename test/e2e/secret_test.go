package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// secretFiles are sinks of the rig's directory, and secretStreams of a NATS server: all formats, to streams and to a
// bucket. What these cannot take at once waits on disk.
const (
	secretFiles = `
  - {name: events, file: {path: "%[1]s/events.ndjson"}}
  - {name: envelopes, file: {path: "%[1]s/envelopes.ndjson"}, format: debezium}
`
	secretStreams = `
  - {name: s1, nats: {url: "nats://%[1]s", stream: S1, subject: "s1.{resource}.{name}"}, queue: {records: 4, full: spool}}
  - {name: s2, nats: {url: "nats://%[1]s", stream: S2, subject: "s2.{resource}.{name}"}, format: cloudevents-binary, queue: {records: 4, full: spool}}
  - {name: s3, nats: {url: "nats://%[1]s", stream: S3, subject: "s3.{resource}.{name}"}, format: debezium, queue: {records: 4, full: spool}}
  - {name: s4, nats: {url: "nats://%[1]s", stream: S4, subject: "s4.{resource}.{name}"}, format: object, queue: {records: 4, full: spool}}
  - {name: kv, nats: {url: "nats://%[1]s", kv: KV}, format: object, queue: {records: 4, full: spool}}
`
)

// outlet is a broker that the exporter writes to beside its files, and what a test does to it.
type outlet struct {
	config string            // its sinks
	logs   map[string]string // of each sink the stream, or the topics without the resource
	// narrow sets the largest message, in bytes, that it takes; -1 is any.
	narrow      func(limit int)
	kill, start func()
	// search looks through all messages of a log, and their headers, and wants some.
	search func(log string)
}

func (o *outlet) sinks() []string { return slices.Sorted(maps.Keys(o.logs)) }

// files are the names of the sinks in secretFiles.
func files() []string { return []string{"events", "envelopes"} }

// TestI9NoValueOfASecretLeaves to files and JetStream.
func TestI9NoValueOfASecretLeaves(t *testing.T) {
	r := newRig(t)
	p := &plant{t: t, r: r}
	p.outlet = outlet{
		config: fmt.Sprintf(secretStreams, r.broker.address()),
		logs:   map[string]string{"s1": "S1", "s2": "S2", "s3": "S3", "s4": "S4", "kv": "KV_KV"},
		narrow: p.narrowStreams, kill: r.broker.kill, start: r.broker.start, search: p.searchStream,
	}
	p.noValueLeaves()
}

// noValueLeaves plants values, lets everything happen to them, and looks for them wherever the exporter writes and
// whatever it shows: in the sinks, the state with its spool and the objects that it keeps, dead letters, the log, the
// status pages, and what each command says.
func (p *plant) noValueLeaves() {
	t, r := p.t, p.r
	config := fmt.Sprintf(`
resources:
  - {resource: secrets, keep: [managedFields, lastApplied], before: true, filter: '!has(object.metadata.labels) || int(object.data.a) > 0', filterFailure: deadletter}
  - {resource: configmaps, redact: [.data.token], keep: [lastApplied], before: true}
listen: %q
state: {dir: %q}
log: {level: debug}
sinks:
`, r.exporter.listen, filepath.Join(r.dir, "state")) + fmt.Sprintf(secretFiles, r.dir) + p.outlet.config
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	r.exporter.args, r.exporter.sinks = []string{"run", "--kubeconfig", r.cluster.Kubeconfig(), "-f", path}, nil
	r.exporter.start(t)
	events := followFile(filepath.Join(r.dir, "events.ndjson"))

	p.secret("kept")
	p.secret("gone")
	p.config("settings")
	events.await(t, r.exporter, "the Secret", func(e *event) bool { return e.Name == "gone" })
	p.update(secrets(), "gone")
	p.update(core("configmaps"), "settings")
	p.remove("gone")
	events.await(t, r.exporter, "the delete", func(e *event) bool { return e.op() == "deleted" && e.Name == "gone" })
	p.letters(events)
	p.spool(events)
	r.exporter.process.Kill()
	if found := p.searchState(); found.chunks == 0 || found.images == 0 {
		t.Errorf("the state has %d chunks of the spool and %d objects with hashes: nothing was looked at", found.chunks, found.images)
	}
	p.outlet.start()
	p.update(secrets(), "kept")
	p.update(core("configmaps"), "settings")
	p.secret("missed")
	r.exporter.start(t)
	events.await(t, r.exporter, "the missed Secret", func(e *event) bool { return e.Name == "missed" })
	r.exporter.stop(t)
	p.remove("missed")
	p.forget()
	r.exporter.start(t)
	events.await(t, r.exporter, "the missed delete", func(e *event) bool { return e.Name == "missed" && e.FinalStateUnknown })
	p.secret("last")
	events.await(t, r.exporter, "the last Secret", func(e *event) bool { return e.Name == "last" })
	r.command("snapshot", "--wait")
	p.searchEvents("last")
	p.sendLettersAgain()
	for _, page := range []string{"/", "/statusz", "/metrics"} {
		p.search(page, []byte(r.exporter.get(t, page)))
	}
	if diffs := p.searchCommands(path, append(files(), p.outlet.sinks()...)); !strings.Contains(diffs, `: `+hashed) || !strings.Contains(diffs, ` -> `+hashed) {
		t.Errorf("tail shows no change of a hashed value: %.3000s", diffs)
	}
	r.exporter.stop(t)

	p.searchState()
	hashes := 0
	for _, log := range p.outlet.logs {
		p.outlet.search(log)
	}
	p.wantBefore(events.all(t))
	p.searchFiles(func(name string, text []byte) {
		if strings.HasSuffix(name, ".ndjson") {
			hashes += bytes.Count(text, []byte(hashed))
		}
	})
	if hashes == 0 {
		t.Error("no file has a hash: nothing was redacted, or nothing was written")
	}
}

// letters makes Secrets that are kept as dead letters: one that the broker does not take, and one whose filter fails.
func (p *plant) letters(events *follower) {
	p.t.Helper()
	p.outlet.narrow(2 << 10)
	p.restart() // the sinks know the limit
	p.create(secrets(), map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": p.metadata("huge"), "data": map[string]any{"a": "MQ=="}, "stringData": p.many(128),
	})
	failing := p.metadata("failing")
	failing["labels"] = map[string]any{"a": "b"}
	p.create(secrets(), map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": failing, "data": map[string]any{"a": base64.StdEncoding.EncodeToString([]byte(p.value()))},
	})
	events.await(p.t, p.r.exporter, "the Secret whose filter fails", func(e *event) bool { return e.op() == "gap" && e.Name == "failing" })
	eventually(p.t, deliveryLimit, "all letters are kept", func() bool { return len(p.r.letters()) >= len(files())+2*len(p.outlet.logs) })
	p.searchLetters(append(files(), p.outlet.sinks()...), "filter")
	p.searchLetters(p.outlet.sinks(), "too_large")
	if !strings.Contains(p.r.exporter.log(p.t), "it may quote the object") {
		p.t.Error("the log tells of no filter that fails")
	}
}

// sendLettersAgain brings the letters into the sinks. A queue of four records may go to disk, and the exporter then
// keeps a letter and says that the command is to be tried again.
func (p *plant) sendLettersAgain() {
	p.t.Helper()
	p.outlet.narrow(-1)
	p.restart()
	eventually(p.t, deliveryLimit, "all letters are sent", func() bool {
		o := p.r.run("deadletter", "replay", "--force")
		said := o.Stdout + o.Stderr
		p.search("what replay says", []byte(said))
		if o.Code != 0 && !strings.Contains(said, "try again when kubecdc_spool_bytes is 0") {
			p.t.Fatalf("exporter deadletter replay: %+v", o)
		}
		return o.Code == 0
	})
	if left := p.r.letters(); len(left) > 0 {
		p.t.Errorf("letters are left: %+v", left)
	}
}

// spool lets changes happen that the broker cannot take.
func (p *plant) spool(events *follower) {
	p.t.Helper()
	p.outlet.kill()
	for range 12 {
		p.update(secrets(), "kept")
		p.update(core("configmaps"), "settings")
	}
	p.secret("spooled")
	p.update(secrets(), "spooled")
	p.remove("spooled")
	events.await(p.t, p.r.exporter, "what the broker does not take", func(e *event) bool { return e.op() == "deleted" && e.Name == "spooled" })
	for _, name := range p.outlet.sinks() {
		p.spooled(name)
	}
}

func (p *plant) restart() {
	p.t.Helper()
	p.r.exporter.stop(p.t)
	p.r.exporter.start(p.t)
	eventually(p.t, deliveryLimit, "the exporter is ready", func() bool { return p.r.exporter.answers("/readyz") })
}

func (p *plant) narrowStreams(limit int) {
	p.t.Helper()
	js := p.r.broker.open().js
	for _, name := range p.outlet.logs {
		stream, err := js.Stream(p.t.Context(), name)
		if err != nil {
			p.t.Fatal(err)
		}
		config := stream.CachedInfo().Config
		config.MaxMsgSize = int32(limit)
		if _, err := js.UpdateStream(p.t.Context(), config); err != nil {
			p.t.Fatal(err)
		}
	}
}

// wantBefore wants what could say too much: an update and a missed delete of a Secret that tell how it was.
func (p *plant) wantBefore(events []event) {
	p.t.Helper()
	updated, missed := false, false
	for i := range events {
		e := &events[i]
		updated = updated || e.Resource == "secrets" && strings.Contains(e.Before, "hmac-sha256:")
		missed = missed || e.Resource == "secrets" && e.FinalStateUnknown && bytes.Contains(e.Data, []byte("hmac-sha256:"))
	}
	if !updated || !missed {
		p.t.Errorf("an update has a Secret as it was: %t; a missed delete has: %t; want both", updated, missed)
	}
}

// search looks for every value, in the clear and as the API server encodes it.
func (p *plant) search(where string, text []byte) {
	p.t.Helper()
	for _, v := range p.values {
		if bytes.Contains(text, []byte(v)) || bytes.Contains(text, []byte(base64.StdEncoding.EncodeToString([]byte(v)))) {
			p.t.Errorf("%s has %s", where, v)
		}
	}
}

// searchFiles looks through everything in the rig's directory.
func (p *plant) searchFiles(also func(name string, text []byte)) {
	p.t.Helper()
	err := filepath.WalkDir(p.r.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		p.search(path, text)
		also(path, text)
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// searchStream looks through all messages and their headers, and wants some.
func (p *plant) searchStream(name string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), deliveryLimit)
	defer cancel()
	stream, err := p.r.broker.open().js.Stream(ctx, name)
	if err != nil {
		p.t.Fatal(err)
	}
	state := stream.CachedInfo().State
	if state.Msgs == 0 {
		p.t.Errorf("stream %s is empty", name)
	}
	for seq := state.FirstSeq; seq <= state.LastSeq; seq++ {
		m, err := stream.GetMsg(ctx, seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue // a bucket has the newest of each key alone
		}
		if err != nil {
			p.t.Fatal(err)
		}
		p.search(fmt.Sprintf("stream %s, message %d", name, seq), fmt.Appendf(m.Data, "%v", m.Header))
	}
}
