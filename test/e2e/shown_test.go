package e2e

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

// searchCommands runs every command that shows something of the exporter or its sinks, and looks through what they say.
// Of verify the finding does not matter: what was withheld is missing. It returns what tail says with --diff.
func (p *plant) searchCommands(config string, sinks []string) (diffs string) {
	p.t.Helper()
	asked := [][]string{
		{"checkpoint", "show", "-o", "json"}, {"inventory", "list"}, {"inventory", "list", "-o", "json"},
		{"deadletter", "list"}, {"deadletter", "list", "-o", "json"},
	}
	for _, name := range sinks {
		tail := []string{"tail", "-f", config, "--kubeconfig", p.r.cluster.Kubeconfig(), "--sink", name, "--since", "start", "--follow=false"}
		said := p.searchCommand(append(tail, "--diff")...)
		if !strings.Contains(said, "kept") {
			p.t.Errorf("tail of sink %s says %q", name, said)
		}
		diffs += said
		asked = append(asked, append(tail, "-o", "json"),
			[]string{"verify", "-f", config, "--kubeconfig", p.r.cluster.Kubeconfig(), "--sink", name, "--timeout", "1s", "-o", "json"})
	}
	for _, args := range asked {
		p.searchCommand(args...)
	}
	return diffs
}

// searchCommand returns what the command says. It may find a difference, and nothing worse.
func (p *plant) searchCommand(args ...string) string {
	p.t.Helper()
	o := p.r.run(args...)
	if o.Code != 0 && (args[0] != "verify" || o.Code != 1) {
		p.t.Errorf("exporter %s: %.2000v", strings.Join(args, " "), o)
	}
	p.search("what "+args[0]+" says", []byte(o.Stdout+o.Stderr))
	return o.Stdout + o.Stderr
}

// searchEvents looks through what the status page is told until it has heard of the object.
func (p *plant) searchEvents(name string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), deliveryLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.r.exporter.listen+"/events", nil)
	if err != nil {
		p.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	var heard []byte
	for !bytes.Contains(heard, []byte(`"`+name+`"`)) || !bytes.Contains(heard, []byte("event: status")) {
		part := make([]byte, 32<<10)
		n, err := answer.Body.Read(part)
		if heard = append(heard, part[:n]...); err != nil && !errors.Is(err, io.EOF) {
			p.t.Fatalf("%v; heard %.2000s", err, heard)
		}
	}
	p.search("/events", heard)
}

// searchLetters wants letters of all sinks with hashes, and nothing else of the values.
func (p *plant) searchLetters(sinks []string, reasons ...string) {
	p.t.Helper()
	kept := map[string]bool{}
	for _, l := range p.r.letters() {
		kept[l.Sink+" "+l.Reason] = true
		if shown := p.searchCommand("deadletter", "show", "--id", l.ID, "--sink", l.Sink); !strings.Contains(shown, hashed) {
			p.t.Errorf("letter %s of sink %s, %s %s, has no hash: %.2000s", l.ID, l.Sink, l.Op, l.Name, shown)
		}
	}
	for _, name := range sinks {
		for _, reason := range reasons {
			if !kept[name+" "+reason] {
				p.t.Errorf("sink %s has no letter for the reason %s", name, reason)
			}
		}
	}
}

// spooled returns when something waits on disk for the sink.
func (p *plant) spooled(name string) {
	p.t.Helper()
	eventually(p.t, 2*time.Minute, "something is spooled for sink "+name, func() bool {
		return p.r.exporter.metric(p.t, `kubecdc_spool_bytes{sink="`+name+`"}`) > 0
	})
}
