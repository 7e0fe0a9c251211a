package e2e

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// TestI9WhatLiesOnDiskIsRedactedByTodaysRules: values that wait on disk for a sink, and in a dead letter, when the
// rules become stricter, go out as today's rules have it, and are shown so.
func TestI9WhatLiesOnDiskIsRedactedByTodaysRules(t *testing.T) {
	t.Run("of the resource", func(t *testing.T) { becomeStricter(t, ", redact: [.data]", "") })
	t.Run("of the sink", func(t *testing.T) { becomeStricter(t, "", ", redact: [.data]") })
}

// becomeStricter has the resource and the sink begin without rules, and go on with these.
func becomeStricter(t *testing.T, ofResource, ofSink string) {
	r := newRig(t)
	config := `
resources: [{resource: configmaps, namespaces: [default]%s}]
sinks:
- {name: bus, nats: {url: "nats://` + r.broker.address() + `", stream: ` + streamName + `}, queue: {records: 4, full: spool}%s}
`
	r.configured(fmt.Sprintf(config, "", ""))
	p := plant{t: t, r: r}
	p.outlet = outlet{logs: map[string]string{"bus": streamName}}
	r.exporter.start(t)
	p.create(core("configmaps"), map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "settings", "namespace": "default"}, "data": map[string]any{"token": "bare"},
	})
	p.has("settings") // as the rules have it; from here on nothing may leave
	p.narrowStreams(2 << 10)
	p.restart()
	p.create(core("configmaps"), map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "huge", "namespace": "default"}, "data": p.many(128),
	})
	eventually(t, deliveryLimit, "the letter is kept", func() bool { return len(r.letters()) == 1 })
	r.broker.kill()
	for range 12 {
		p.update(core("configmaps"), "settings")
	}
	p.spooled("bus")
	r.exporter.process.Kill()
	if shown := r.command("deadletter", "show"); !strings.Contains(shown, p.values[0]) {
		t.Fatalf("the letter has no value: %.2000s", shown)
	}

	r.configured(fmt.Sprintf(config, ofResource, ofSink))
	r.broker.start()
	r.exporter.start(t)
	p.config("last")
	p.has("last")
	p.narrowStreams(-1)
	p.restart()
	p.searchCommand("deadletter", "show")
	p.searchCommand("deadletter", "list", "-o", "json")
	if out := p.searchCommand("deadletter", "replay", "--force"); strings.Count(out, "delivered") != 1 {
		t.Errorf("replay says %s", out)
	}
	r.exporter.stop(t)
	p.searchStream(streamName)
	p.searchState()
	if n := p.hashesOf("settings"); n < 4 {
		t.Errorf("the stream has %d redacted changes of what lay on disk", n)
	}
	if n := p.hashesOf("huge"); n != 1 {
		t.Errorf("the stream has %d redacted changes of what was a letter", n)
	}
}

// has returns when the stream has a record of the object.
func (p *plant) has(name string) {
	p.t.Helper()
	eventually(p.t, deliveryLimit, "the stream has "+name, func() bool {
		found := false
		p.eachMessage(func(value []byte) { found = found || bytes.Contains(value, []byte(`"name":"`+name+`"`)) })
		return found
	})
}

// hashesOf is how many records of the object have hashes.
func (p *plant) hashesOf(name string) (n int) {
	p.t.Helper()
	p.eachMessage(func(value []byte) {
		if bytes.Contains(value, []byte(`"name":"`+name+`"`)) && bytes.Contains(value, []byte("hmac-sha256:")) {
			n++
		}
	})
	return n
}

func (p *plant) eachMessage(each func(value []byte)) {
	p.t.Helper()
	stream, err := p.r.broker.open().js.Stream(p.t.Context(), streamName)
	if err != nil {
		return // not made yet
	}
	info, err := stream.Info(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	for seq := info.State.FirstSeq; seq > 0 && seq <= info.State.LastSeq; seq++ {
		m, err := stream.GetMsg(p.t.Context(), seq)
		if err != nil {
			p.t.Fatal(err)
		}
		each(m.Data)
	}
}
