package decode

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/format/encode"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// clusterUID is that of all records here.
const clusterUID = "0b6f3c1e-8a4d"

// outlet is a format on a transport.
type outlet struct {
	format    string
	transport encode.Transport
}

// outlets are all that there are: formats with headers have no line of their own in a file.
func outlets() (all []outlet) {
	for _, format := range []string{encode.FormatCloudEvents, encode.FormatCloudEventsBinary, encode.FormatDebezium, encode.FormatObject} {
		all = append(all, outlet{format, encode.NATS}, outlet{format, encode.Kafka})
		if format == encode.FormatCloudEvents || format == encode.FormatDebezium {
			all = append(all, outlet{format, encode.File})
		}
	}
	return all
}

// stored is the record as it lies in a log.
func (o outlet) stored(t *testing.T, cluster, uid string, rec *change.Record) *sink.Stored {
	t.Helper()
	encoder := encode.NewEncoder(encode.Options{Cluster: cluster, ClusterUID: uid, Format: o.format, Transport: o.transport})
	messages, err := encoder.Encode(t.Context(), nil, rec)
	must(t, err)
	m := messages[0]
	stored := &sink.Stored{Place: "here", Key: m.Key, Headers: m.Headers, Value: m.Value, Time: m.Time}
	if o.transport != encode.File {
		stored.Headers = append(stored.Headers, sink.Header{Name: sink.HeaderID, Value: m.ID})
	}
	return stored
}

// widget is an update of an object.
func widget(object string) *change.Record {
	return &change.Record{
		Stream: &change.Stream{Resource: change.Resource{Group: "example.com", Version: "v1", Name: "widgets", Kind: "Widget"}}, Op: change.Updated,
		Key: change.Key{Namespace: "shop", Name: "web"}, UID: "u-1", ResourceVersion: "9", Object: []byte(object), Received: time.UnixMilli(1),
	}
}

// TestDecodeReadsWhatEncodeWrote: every operation in every format of every transport.
func TestDecodeReadsWhatEncodeWrote(t *testing.T) {
	stream := &change.Stream{Resource: change.Resource{Group: "apps", Version: "v1", Name: "deployments", Kind: "Deployment"}}
	snapshot := &change.Snapshot{ID: "900.1732155194123", Reason: change.Gone, From: "12", ResourceVersion: "900"}
	const object = `{"kind":"Deployment","specversion":"1.0","spec":{"before":1}}`
	for _, f := range outlets() {
		for _, op := range []change.Op{change.Added, change.Updated, change.Deleted, change.Replaced, change.Sync, change.SnapshotBegin, change.SnapshotEnd, change.Gap} {
			rec := &change.Record{Stream: stream, Op: op, Received: time.UnixMilli(1_000_123).UTC(), ResourceVersion: "900"}
			if op.OfObject() {
				rec.Key, rec.UID, rec.Object = change.Key{Namespace: "shop", Name: "web"}, "u-1", []byte(object)
				rec.Remarks = &change.Remarks{Trimmed: ".data['é b']", BeforeOmitted: op != change.Deleted, Replayed: change.Current}
			} else {
				rec.Snapshot = snapshot
			}
			t.Run(fmt.Sprint(f.format, f.transport, op), func(t *testing.T) {
				c, err := Read(f.stored(t, "dev", clusterUID, rec))
				must(t, err)
				if c.ID != rec.ID(clusterUID) || !c.Time.Equal(rec.Received) {
					t.Errorf("read %+v at %s, want %+v at %s", c.ID, c.Time, rec.ID(clusterUID), rec.Received)
				}
				if m := rec.Remarks; m != nil && (c.Trimmed != m.Trimmed || c.BeforeOmitted != m.BeforeOmitted || c.Replayed != m.Replayed) {
					t.Errorf("the marks are %q, %t, %q", c.Trimmed, c.BeforeOmitted, c.Replayed)
				}
				if op.OfObject() {
					bare := op == change.Deleted && f.format == encode.FormatObject
					if string(c.Object) != object && !bare || bare && c.Object != nil {
						t.Errorf("the object is %s", c.Object)
					}
					return
				}
				if c.Reason != change.Gone || len(c.Data) == 0 {
					t.Errorf("the frame is %s of reason %q", c.Data, c.Reason)
				}
			})
		}
	}
}

// TestI4WhatIsAsDeepAsTheAPIServerTakesIsRead in the formats that have it in an envelope, and as a patch of it.
func TestI4WhatIsAsDeepAsTheAPIServerTakesIsRead(t *testing.T) {
	const most = 10_000
	lists := strings.Repeat("[", most-1) + strings.Repeat("]", most-1)
	object := []byte(`{"a":` + lists + `}`)
	if !json.Valid(object) || json.Valid(fmt.Appendf(nil, `{"o":%s}`, object)) {
		t.Fatal("an object of another depth is the deepest that Kubernetes reads")
	}
	patch := []byte(`[{"op":"add","path":"/a","value":` + lists + `}]`)
	for _, format := range []string{encode.FormatCloudEvents, encode.FormatDebezium} {
		for _, op := range []change.Op{change.Added, change.Updated, change.Deleted} {
			rec := widget(string(object))
			rec.Op, rec.Before = op, object
			if op == change.Updated && format == encode.FormatCloudEvents {
				rec.Patch, rec.Base = patch, "7"
			}
			stored := outlet{format, encode.File}.stored(t, "dev", clusterUID, rec)
			c, err := Read(stored)
			if err != nil || c.ID != rec.ID(clusterUID) || rec.Patch == nil && string(c.Object) != string(object) || string(c.Patch) != string(rec.Patch) {
				t.Errorf("%s %s: %v", format, op, err)
			}
			foreign := (&Owner{Cluster: "dev", UIDs: []string{"ffff"}}).Judge(stored)
			if foreign == nil || !strings.Contains(foreign.Error(), "dev") {
				t.Errorf("%s %s: the owner is %v", format, op, foreign)
			}
		}
	}
}

func TestDecodeReadsPatches(t *testing.T) {
	const patch = `[{"op":"remove","path":"/spec"}]`
	rec := widget(`{}`)
	rec.Patch, rec.Base = []byte(patch), "7"
	for _, f := range outlets() {
		if f.format != encode.FormatCloudEvents && f.format != encode.FormatCloudEventsBinary {
			continue // is given none
		}
		c, err := Read(f.stored(t, "dev", clusterUID, rec))
		if err != nil || string(c.Patch) != patch || c.Base != "7" || c.Object != nil {
			t.Errorf("%s: read %+v, %v", f.format, c, err)
		}
	}
}

// TestDecodeReadsActorsAsTheyAreWritten: only NATS has percent-encoding.
func TestDecodeReadsActorsAsTheyAreWritten(t *testing.T) {
	const actor, changed = `[{"manager":"50%25 off é"}]`, `["/spec"]`
	rec := widget(`{}`)
	rec.Actor, rec.Changed, rec.ChangedCut = []byte(actor), []byte(changed), true
	for _, f := range outlets() {
		if f.format == encode.FormatObject {
			continue // has no place for them
		}
		c, err := Read(f.stored(t, "dev", clusterUID, rec))
		if err != nil || string(c.Actor) != actor || string(c.Changed) != changed || !c.ChangedCut {
			t.Errorf("%s on %d: read %s and %s, %v", f.format, f.transport, c.Actor, c.Changed, err)
		}
	}
}

func TestDecodeOfWhatIsNotOurs(t *testing.T) {
	for _, value := range []string{"", "{}", "[1]", "x", `{"id":"7"}`, `{"id":7}`} {
		if c, err := Read(&sink.Stored{Value: []byte(value)}); err != change.ErrForeignID {
			t.Errorf("read %q as %+v, %v", value, c, err)
		}
	}
	damaged := &sink.Stored{Place: "line 7", Headers: []sink.Header{{Name: sink.HeaderID, Value: "0b6f3c1e/pods/shop/web/u-1/12/updated"}}, Value: []byte(`{"a`)}
	if c, err := Read(damaged); err == nil || err.Error() != "read line 7: its value is not a JSON object: unexpected end of JSON input" {
		t.Errorf("read a damaged value as %+v, %v", c, err)
	}
}

// TestI10AnotherClustersRecordIsKnown in every format of every transport, by the name that it was written under.
func TestI10AnotherClustersRecordIsKnown(t *testing.T) {
	owner := Owner{Cluster: "prod & co", UIDs: []string{"aaaaaaaa-1", "bbbbbbbb-2"}}
	named := owner
	named.Named = true
	widget := widget(`{"kind":"Widget","specversion":"1.0","cluster":"tenant","source":{"name":"tenant"}}`) // fields of the envelopes' names
	for _, f := range outlets() {
		t.Run(fmt.Sprint(f.format, f.transport), func(t *testing.T) {
			judge := func(owner Owner, cluster, uid string) error {
				widget.Epoch = uid
				return owner.Judge(f.stored(t, cluster, uid, widget))
			}
			for _, uid := range []string{"aaaaaaaa-1", "bbbbbbbb-2", "bbbbbbbb-2~history"} {
				if err := judge(owner, "prod & co", uid); err != nil {
					t.Errorf("one of ours: %v", err)
				}
			}
			knows := f.format != encode.FormatObject
			for _, c := range []struct {
				owner Owner
				name  string
				same  bool
			}{{owner, "prod & co", knows}, {owner, "other", false}, {named, "prod & co", true}, {named, "other", !knows}} {
				var foreign *sink.ForeignError
				err := judge(c.owner, c.name, "cccccccc-3")
				if !errors.As(err, &foreign) || foreign.UID != "cccccccc" || foreign.Same != c.same || foreign.Place != "here" {
					t.Errorf("one of cluster %q, named %t: %+v", c.name, c.owner.Named, err)
				}
			}
		})
	}
	if err := named.Judge(&sink.Stored{Value: []byte(`{"kind":"Widget","cluster":"other","id":"7"}`)}); err != nil {
		t.Errorf("what kubecdc did not write: %v", err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
