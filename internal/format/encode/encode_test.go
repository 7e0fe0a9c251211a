package encode

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

const clusterUID = "0b6f3c1e-8a4d-4c39-9d2b-0a1b2c3d4e5f"

func deployments() *change.Stream {
	return &change.Stream{Resource: change.Resource{Group: "apps", Version: "v1", Name: "deployments", Kind: "Deployment"}}
}

func clusterRoles() *change.Stream {
	return &change.Stream{Resource: change.Resource{
		Group: "rbac.authorization.k8s.io", Version: "v1", Name: "clusterroles", Kind: "ClusterRole", ClusterScoped: true,
	}}
}

func events() *change.Stream {
	return &change.Stream{Resource: change.Resource{Version: "v1", Name: "events", Kind: "Event"}}
}

func received() time.Time {
	return time.Date(2026, 11, 21, 3, 33, 14, 123456789, time.FixedZone("CET", 3600))
}

// encoded is dst with the messages of the record, whose format cannot fail.
func encoded(e *Encoder, dst []sink.Message, rec *change.Record) []sink.Message {
	messages, err := e.Encode(context.Background(), dst, rec)
	if err != nil {
		panic(err)
	}
	return messages
}

// failing is a format that fails when it has taken from the encoder all that a format may take.
type failing struct{ format }

func (f failing) fill(ctx context.Context, m *memory, msg *sink.Message, rec *change.Record) error {
	return errors.Join(f.format.fill(ctx, m, msg, rec), errors.New("no schema"))
}

func TestAFormatThatFailsLeavesTheBatchAsItWas(t *testing.T) {
	for _, o := range outlets() {
		encoder, other := formatEncoder(o.format, o.kind), formatEncoder(o.format, o.kind)
		want := text(encoded(other, encoded(other, nil, records()["updated"]), records()["odd"]))
		batch := encoded(encoder, nil, records()["updated"])
		works := encoder.format
		encoder.format = failing{works}
		batch, err := encoder.Encode(t.Context(), batch, records()["deleted"])
		if err == nil || len(batch) != 1 {
			t.Fatalf("%s on %s: %d messages, %v", o.format, o.transport, len(batch), err)
		}
		encoder.format = works
		if got := text(encoded(encoder, batch, records()["odd"])); got != want {
			t.Errorf("%s on %s: the batch is\n%s\nwant\n%s", o.format, o.transport, got, want)
		}
	}
}

// records are one of each shape, by the name of its golden file.
func records() map[string]*change.Record {
	snapshot := &change.Snapshot{
		ID: "900.1732155194123", Reason: change.Gone, From: "850", ResourceVersion: "900",
		Counts: change.Counts{Replaced: 3, Deleted: 2, Synced: 0},
	}
	web := change.Key{Namespace: "shop", Name: "web"}
	object := []byte(`{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"web","uid":"u-1"},"spec":{"x":"\u003c"}}`)
	before := []byte(`{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"web","uid":"u-1"},"spec":{"x":"é \u003c","n":9007199254740993}}`)
	all := map[string]*change.Record{
		"updated":  {Stream: deployments(), Op: change.Updated, Key: web, UID: "u-1", ResourceVersion: "123456", Object: object},
		"deleted":  {Stream: deployments(), Op: change.Deleted, Key: web, UID: "u-1", ResourceVersion: "123457", Object: object},
		"replaced": {Stream: deployments(), Op: change.Replaced, Key: web, UID: "u-1", ResourceVersion: "99", Object: object, Snapshot: snapshot},
		"gone": {Stream: deployments(), Op: change.Deleted, Key: web, UID: "u-1", ResourceVersion: "99",
			FinalStateUnknown: true, Snapshot: snapshot},
		"begin": {Stream: deployments(), Op: change.SnapshotBegin, ResourceVersion: "900", Snapshot: snapshot},
		"end":   {Stream: deployments(), Op: change.SnapshotEnd, ResourceVersion: "900", Snapshot: snapshot},
		"limited": {Stream: deployments(), Op: change.SnapshotEnd, ResourceVersion: "900", Snapshot: &change.Snapshot{
			ID: "900.1732155194123", Reason: change.Requested, ResourceVersion: "900", Counts: change.Counts{Synced: 1},
			Limits: change.Limits{Namespace: "shop", Selector: `tier in (a,"b")`},
		}},
		"gap":      {Stream: deployments(), Op: change.Gap, ResourceVersion: "900", Snapshot: snapshot},
		"resolved": {Stream: deployments(), Op: change.Resolved, ResourceVersion: "900"},
		"resolved-digest": {Stream: deployments(), Op: change.Resolved, ResourceVersion: "950", Remarks: &change.Remarks{Proof: &change.Proof{
			Digest: change.DigestOf(change.Key{Namespace: "shop", Name: "web"}, "u-1", "123456").Plus(change.DigestOf(change.Key{Name: "node-1"}, "u-2", "7")),
			Time:   time.Date(2026, 11, 21, 2, 33, 4, 123456000, time.UTC),
		}}},
		"resolved-comparing": {Stream: deployments(), Op: change.Resolved, ResourceVersion: "900", Snapshot: snapshot},
		"policy": {Stream: deployments(), Op: change.Gap, Key: web, UID: "u-1", ResourceVersion: "99",
			Snapshot: &change.Snapshot{ID: "99", Reason: change.Policy, From: "99", ResourceVersion: "99"}},
		"rejected": {Stream: deployments(), Op: change.Gap, Key: web, UID: "u-1", ResourceVersion: "99",
			Snapshot: &change.Snapshot{ID: "99", Reason: change.Policy, From: "99", ResourceVersion: "99"},
			Remarks:  &change.Remarks{Rejected: "too_large", Letter: "00112233445566778899"}},
		"trimmed": {Stream: deployments(), Op: change.Updated, Key: web, UID: "u-1", ResourceVersion: "123456", Object: object,
			Remarks: &change.Remarks{Trimmed: ".metadata.managedFields,.data['a b']"}},
		"before-omitted": {Stream: deployments(), Op: change.Updated, Key: web, UID: "u-1", ResourceVersion: "123456", Object: object,
			Remarks: &change.Remarks{BeforeOmitted: true}},
		"replayed": {Stream: deployments(), Op: change.Updated, Key: web, UID: "u-1", ResourceVersion: "123456", Object: object,
			Remarks: &change.Remarks{Replayed: change.History}},
		"changed": {Stream: deployments(), Op: change.Updated, Key: web, UID: "u-1", ResourceVersion: "123456", Object: object, Before: before,
			Changed: []byte(`["/spec/n","/spec/x","/é~1\"\u0001"]`), ChangedCut: true},
		"patched": {Stream: deployments(), Op: change.Updated, Key: web, UID: "u-1", ResourceVersion: "123456", Object: object, Before: before,
			Patch: []byte(`[{"op":"remove","path":"/spec/n"},{"op":"replace","path":"/spec/x","value":"\u003c"}]`), Base: "123450",
			Changed: []byte(`["/spec/n","/spec/x"]`)},
		"actor": {Stream: deployments(), Op: change.Updated, Key: web, UID: "u-1", ResourceVersion: "123456", Object: object, Actor: []byte(
			`[{"manager":"kubectl \u003cé","operation":"Update","time":"2026-11-21T02:33:14Z"},{"manager":"kubelet","operation":"Update","subresource":"status","time":"2026-11-21T02:33:14Z"}]`)},
		"involved": {Stream: events(), Op: change.Added, Key: change.Key{Namespace: "shop", Name: "web-1.17f"}, UID: "u-3", ResourceVersion: "123458",
			Object:   []byte(`{"kind":"Event","apiVersion":"v1","metadata":{"name":"web-1.17f","namespace":"shop"},"involvedObject":{"kind":"Pod","namespace":"shop","name":"web-1","uid":"u-4"},"reason":"BackOff"}`),
			Involved: []byte(`{"resourceVersion":"123400","labels":{"app":"web \u003cé"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"u-5"}]}`)},
		"updated-before": {Stream: deployments(), Op: change.Updated, Key: web, UID: "u-1", ResourceVersion: "123456", Object: object, Before: before},
		"deleted-before": {Stream: deployments(), Op: change.Deleted, Key: web, UID: "u-1", ResourceVersion: "123457", Object: object, Before: before},
		"gone-before": {Stream: deployments(), Op: change.Deleted, Key: web, UID: "u-1", ResourceVersion: "99", Before: before,
			FinalStateUnknown: true, Snapshot: snapshot, Last: true},
		"replaced-before": {Stream: deployments(), Op: change.Replaced, Key: web, UID: "u-1", ResourceVersion: "99", Object: object, Before: before,
			Snapshot: snapshot, Last: true},
		"odd": {Stream: clusterRoles(), Op: change.Added, Key: change.Key{Name: "system:\"té\" \\a\n"}, UID: "u-2",
			ResourceVersion: "5", Object: []byte(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"system:\"té\" \\a\n"}}`)},
	}
	for _, rec := range all {
		rec.Received = received()
	}
	return all
}

func TestCloudEventsGoldens(t *testing.T) {
	encoder := NewEncoder(Options{Cluster: "prod-eu1", ClusterUID: clusterUID})
	for name, rec := range records() {
		t.Run(name, func(t *testing.T) {
			encoder.Reset()
			got := string(encoded(encoder, nil, rec)[0].Value) + "\n"
			same(t, filepath.Join("testdata", "cloudevents", name+".json"), got)
		})
	}
}

// same compares with a golden file, which UPDATE_GOLDEN=1 writes.
func same(t *testing.T, golden, got string) {
	t.Helper()
	if os.Getenv("UPDATE_GOLDEN") != "" {
		must(t, os.MkdirAll(filepath.Dir(golden), 0o755))
		must(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want, err := os.ReadFile(golden)
	must(t, err)
	if got != string(want) {
		t.Errorf("encoded\n%swant\n%s", got, want)
	}
}

func TestSubjectsMapOneToOne(t *testing.T) {
	subject, err := NewSubject("k8s.{cluster}.{group}.{resource}.{namespace}.{name}", "prod.eu1")
	must(t, err)
	if got, want := subject.Filter(), "k8s.prod_eu1.*.*.*.*"; got != want {
		t.Errorf("filter is %q, want %q", got, want)
	}
	of := func(stream *change.Stream, key change.Key) string {
		return string(subject.Append(nil, &change.Record{Stream: stream, Key: key}))
	}
	for want, got := range map[string]string{
		"k8s.prod_eu1.core.events.shop.web":                                           of(events(), change.Key{Namespace: "shop", Name: "web"}),
		"k8s.prod_eu1.apps.deployments.shop.web":                                      of(deployments(), change.Key{Namespace: "shop", Name: "web"}),
		"k8s.prod_eu1.apps.deployments.shop.web_v1=5Fx":                               of(deployments(), change.Key{Namespace: "shop", Name: "web.v1_x"}),
		"k8s.prod_eu1.rbac_authorization_k8s_io.clusterroles.-.system=3Anode=3Aa=20b": of(clusterRoles(), change.Key{Name: "system:node:a b"}),
		"k8s.prod_eu1.rbac_authorization_k8s_io.clusterroles.-.t=C3=A9=3D=2A=3E":      of(clusterRoles(), change.Key{Name: "té=*>"}),
		"k8s.prod_eu1.rbac_authorization_k8s_io.clusterroles.-.-":                     of(clusterRoles(), change.Key{}),
		"k8s.prod_eu1.rbac_authorization_k8s_io.clusterroles.-.=2D":                   of(clusterRoles(), change.Key{Name: "-"}),
	} {
		if got != want {
			t.Errorf("subject is %q, want %q", got, want)
		}
	}
}

func TestBadTemplatesAreNamed(t *testing.T) {
	for template, want := range map[string]string{
		"k8s.{nam}": `parse template "k8s.{nam}": unknown placeholder {nam}: allowed are cluster, group, version, kind, resource, namespace, name, label:KEY and namespaceLabel:KEY`,
		"k8s.{name": `parse template "k8s.{name": '{' without '}'`,
	} {
		if _, err := NewSubject(template, "c"); err == nil || err.Error() != want {
			t.Errorf("template %q: error %v, want %s", template, err, want)
		}
	}
}

func TestI4GapSaysSinceWhen(t *testing.T) {
	since := time.Date(2026, 11, 21, 2, 33, 14, 0, time.UTC)
	rec := &change.Record{Op: change.Gap, Snapshot: &change.Snapshot{Reason: change.Gone, From: "7", ResourceVersion: "9", Since: since}}
	const want = `{"reason":"gone","lastDelivered":"7","resourceVersion":"9","since":"2026-11-21T02:33:14.000000Z"}`
	if got := string(payload(rec)); got != want {
		t.Errorf("data is %s, want %s", got, want)
	}
}

// must ends the test where there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
