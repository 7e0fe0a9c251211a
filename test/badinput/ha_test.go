package badinput

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// release is what one release of exporters that share a task has apart from others.
type release struct {
	name    string // of its configuration, and of its state directory with a prefix
	cluster string
	stream  string // of its one sink, bus
	lease   string
	log     string // the bucket
}

// flags writes the release's configuration, whose sink is at the broker.
func (d *desk) flags(b *broker, of release) []string {
	d.t.Helper()
	d.write(of.name, fmt.Sprintf(`cluster: %s
resources: [configmaps]
sinks: [{name: bus, nats: {url: %q, stream: %s, subject: "%s.{cluster}.{group}.{resource}.{namespace}.{name}"}}]
state: {log: {sink: bus, name: %s}}
ha: {lease: default/%s, duration: 2s}
`, of.cluster, b.URL(), of.stream, of.stream, of.log, of.lease))
	return []string{"-f", of.name, "--state-dir", "state-" + of.name}
}

func (d *desk) host() string {
	d.t.Helper()
	name, err := os.Hostname()
	if err != nil {
		d.t.Fatal(err)
	}
	return name
}

// isRefused checks that the problem ends a run with the code, and that a check finds it and no other.
func (d *desk) isRefused(flags []string, code int, run, check string) {
	d.t.Helper()
	d.exporter(usual(flags...)...).fails(d.t, code, run)
	r := d.exporter(checking(flags...)...)
	if r.Code != code || !strings.Contains(r.Stdout, "\nproblem  "+check+"\n") || strings.Count(r.Stdout, "\nproblem ") != 1 {
		d.t.Errorf("check: exit code %d, want %d\n%s\nwant in it alone\nproblem  %s", r.Code, code, r.Stdout, check)
	}
}

func TestNoRightsOnTheLease(t *testing.T) {
	d := newDesk(t)
	grant(t, "configmaps")
	b := startBroker(t)
	flags := append(d.flags(b, release{"ours", "dev", "OURS", "rightless", "ours"}), "--context", "limited")
	d.isRefused(flags, 1, `ha.lease: use the Lease default/rightless: leases.coordination.k8s.io "rightless" is forbidden: User "limited" cannot get resource "leases" `+
		`in API group "coordination.k8s.io" in the namespace "default": bind a role with the verbs get, create and update on leases of group coordination.k8s.io `+
		`in namespace default to the exporter's user, or name another Lease`,
		`ha.lease: the API server forbids to get, create, update leases of group coordination.k8s.io in namespace default: `+
			`bind a role with these verbs to the exporter's user, or name another Lease`)
}

// TestI10AnotherReleaseIsRefused: by its Lease while another one holds that, and by its log, whatever cluster wrote it
// and whichever version. Who has the Lease and the log is not disturbed.
func TestI10AnotherReleaseIsRefused(t *testing.T) {
	d := newDesk(t)
	b := startBroker(t)
	ours := release{"ours", "dev", "OURS", "ours", "ours"}
	leader := d.start(usual(append(d.flags(b, ours), "--log-level", "info")...)...)
	leader.logs("msg=\"snapshot complete\" resource=configmaps reason=initial")

	holder := d.host() + " holds the Lease default/ours for other sinks: they write to bus: stream OURS, and this one to bus: stream THEIRS: " +
		"give each release a Lease of its own with ha.lease, and a log of its own with state.log.name; " +
		"if it is the same release, with other sinks altogether, stop its exporters first"
	d.isRefused(d.flags(b, release{"onelease", "dev", "THEIRS", "ours", "theirs"}), 2, "ha.lease: "+holder, "ha.lease: "+holder)

	const log = "the log of the state, bucket ours (state.log): "
	const claimer = log + "exporters that share the Lease default/ours write to it, and this one has default/theirs: " +
		"give each release a log of its own with state.log.name, or let all of one release share a Lease with ha.lease; " +
		"if the Lease has been renamed, stop those with the old one first"
	d.isRefused(d.flags(b, release{"onelog", "dev", "THEIRS", "theirs", "ours"}), 2, "take over: open "+claimer, "read "+claimer)

	cluster := log + `it is of cluster "dev" (uid ` + d.clusterUID() + `), and ours is "prod": ` +
		"give each cluster a log of its own with state.log.name, or correct the key cluster"
	d.isRefused(d.flags(b, release{"prod", "prod", "THEIRS", "theirs", "ours"}), 2, "take over: open "+cluster, "read "+cluster)

	if code := leader.stop(); code != 0 || leader.times("level=WARN")+leader.times("level=ERROR") > 0 {
		t.Errorf("exit code %d:\n%s", code, leader.out)
	}
	b.renew(t, "ours")
	const newer = "read " + log + "it was written by a newer version of exporter (form 3, this one knows 2): " +
		"use that version, or give this exporter a log of its own with state.log.name"
	d.isRefused(d.flags(b, ours), 2, "take over: "+newer, newer)
}

// renew makes a message of the bucket's log one of the next version's form.
func (b *broker) renew(t *testing.T, bucket string) {
	t.Helper()
	kv, err := b.jetstream().KeyValue(t.Context(), bucket)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := kv.Keys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	entry, err := kv.Get(t.Context(), keys[0])
	if err != nil {
		t.Fatal(err)
	}
	value := entry.Value()
	value[len("kubecdc-state")]++
	if _, err := kv.Put(t.Context(), keys[0], value); err != nil {
		t.Fatal(err)
	}
}
