package decode

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/format/encode"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// TestDecodeReadsWhatEncodeWrote: every operation in every format of every transport.
func TestDecodeReadsWhatEncodeWrote(t *testing.T) {
	stream := &change.Stream{Resource: change.Resource{Group: "apps", Version: "v1", Name: "deployments", Kind: "Deployment"}}
	snapshot := &change.Snapshot{ID: "900.1732155194123", Reason: change.Gone, From: "12", ResourceVersion: "900"}
	const object = `{"kind":"Deployment","specversion":"1.0","spec":{"before":1}}`
	for _, f := range []struct {
		format    string
		transport encode.Transport
	}{
		{encode.FormatCloudEvents, encode.File}, {encode.FormatCloudEvents, encode.NATS}, {encode.FormatCloudEvents, encode.Kafka},
		{encode.FormatCloudEventsBinary, encode.NATS}, {encode.FormatCloudEventsBinary, encode.Kafka},
		{encode.FormatDebezium, encode.File}, {encode.FormatDebezium, encode.NATS}, {encode.FormatDebezium, encode.Kafka},
		{encode.FormatObject, encode.NATS}, {encode.FormatObject, encode.Kafka},
	} {
		for _, op := range []change.Op{change.Added, change.Updated, change.Deleted, change.Replaced, change.Sync, change.SnapshotBegin, change.SnapshotEnd, change.Gap} {
			rec := &change.Record{Stream: stream, Op: op, Received: time.UnixMilli(1_000_123).UTC(), ResourceVersion: "900"}
			if op.OfObject() {
				rec.Key, rec.UID, rec.Object = change.Key{Namespace: "shop", Name: "web"}, "u-1", []byte(object)
				rec.Remarks = &change.Remarks{Trimmed: ".data['é b']", BeforeOmitted: op != change.Deleted, Replayed: change.Current}
			} else {
				rec.Snapshot = snapshot
			}
			encoder := encode.NewEncoder(encode.Options{Cluster: "dev", ClusterUID: "0b6f3c1e-8a4d", Format: f.format, Transport: f.transport})
			messages, err := encoder.Encode(t.Context(), nil, rec)
			must(t, err)
			m := messages[0]
			stored := &sink.Stored{Place: "here", Key: m.Key, Headers: m.Headers, Value: m.Value, Time: m.Time}
			if f.transport != encode.File {
				stored.Headers = append(stored.Headers, sink.Header{Name: sink.HeaderID, Value: m.ID})
			}
			t.Run(fmt.Sprint(f.format, f.transport, op), func(t *testing.T) {
				c, err := Read(stored)
				must(t, err)
				if c.ID != rec.ID("0b6f3c1e-8a4d") || !c.Time.Equal(rec.Received) {
					t.Errorf("read %+v at %s, want %+v at %s", c.ID, c.Time, rec.ID("0b6f3c1e"), rec.Received)
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
	stream := &change.Stream{Resource: change.Resource{Group: "example.com", Version: "v1", Name: "widgets", Kind: "Widget"}}
	for _, format := range []string{encode.FormatCloudEvents, encode.FormatDebezium} {
		for _, op := range []change.Op{change.Added, change.Updated, change.Deleted} {
			rec := &change.Record{
				Stream: stream, Op: op, Key: change.Key{Namespace: "shop", Name: "deep"}, UID: "u-1", ResourceVersion: "9", Object: object, Before: object, Received: time.UnixMilli(1),
			}
			if op == change.Updated && format == encode.FormatCloudEvents {
				rec.Patch, rec.Base = patch, "7"
			}
			messages, err := encode.NewEncoder(encode.Options{Cluster: "dev", ClusterUID: "0b6f", Format: format, Transport: encode.File}).Encode(t.Context(), nil, rec)
			must(t, err)
			c, err := Read(&sink.Stored{Place: "here", Value: messages[0].Value})
			if err != nil || c.ID != rec.ID("0b6f") || rec.Patch == nil && string(c.Object) != string(object) || string(c.Patch) != string(rec.Patch) {
				t.Errorf("%s %s: %v", format, op, err)
			}
			foreign := (&Owner{Cluster: "dev", UIDs: []string{"ffff"}}).Judge(&sink.Stored{Value: messages[0].Value})
			if foreign == nil || !strings.Contains(foreign.Error(), "dev") {
				t.Errorf("%s %s: the owner is %v", format, op, foreign)
			}
		}
	}
}

func TestDecodeReadsPatches(t *testing.T) {
	const patch = `[{"op":"remove","path":"/spec"}]`
	stream := &change.Stream{Resource: change.Resource{Version: "v1", Name: "pods", Kind: "Pod"}}
	rec := &change.Record{
		Stream: stream, Op: change.Updated, Key: change.Key{Name: "web"}, UID: "u-1", ResourceVersion: "9", Object: []byte(`{}`),
		Patch: []byte(patch), Base: "7", Received: time.UnixMilli(1),
	}
	for _, f := range []struct {
		format    string
		transport encode.Transport
	}{
		{encode.FormatCloudEvents, encode.File}, {encode.FormatCloudEvents, encode.Kafka},
		{encode.FormatCloudEventsBinary, encode.NATS}, {encode.FormatCloudEventsBinary, encode.Kafka},
	} {
		encoder := encode.NewEncoder(encode.Options{Cluster: "dev", ClusterUID: "0b6f3c1e-8a4d", Format: f.format, Transport: f.transport})
		messages, err := encoder.Encode(t.Context(), nil, rec)
		must(t, err)
		m := messages[0]
		c, err := Read(&sink.Stored{Headers: append(m.Headers, sink.Header{Name: sink.HeaderID, Value: m.ID}), Value: m.Value})
		if err != nil || string(c.Patch) != patch || c.Base != "7" || c.Object != nil {
			t.Errorf("%s: read %+v, %v", f.format, c, err)
		}
	}
}

// TestDecodeReadsActorsAsTheyAreWritten: only NATS has percent-encoding.
func TestDecodeReadsActorsAsTheyAreWritten(t *testing.T) {
	const actor, changed = `[{"manager":"50%25 off é"}]`, `["/spec"]`
	rec := &change.Record{
		Stream: &change.Stream{Resource: change.Resource{Version: "v1", Name: "pods", Kind: "Pod"}}, Op: change.Updated, Received: time.UnixMilli(1),
		Key: change.Key{Name: "web"}, UID: "u-1", ResourceVersion: "9", Object: []byte(`{}`), Actor: []byte(actor), Changed: []byte(changed), ChangedCut: true,
	}
	for _, format := range []string{encode.FormatCloudEvents, encode.FormatCloudEventsBinary, encode.FormatDebezium} {
		for _, transport := range []encode.Transport{encode.NATS, encode.Kafka} {
			encoder := encode.NewEncoder(encode.Options{Cluster: "dev", ClusterUID: "0b6f3c1e-8a4d", Format: format, Transport: transport})
			messages, err := encoder.Encode(t.Context(), nil, rec)
			must(t, err)
			m := messages[0]
			c, err := Read(&sink.Stored{Headers: append(m.Headers, sink.Header{Name: sink.HeaderID, Value: m.ID}), Value: m.Value})
			if err != nil || string(c.Actor) != actor || string(c.Changed) != changed || !c.ChangedCut {
				t.Errorf("%s on %d: read %s and %s, %v", format, transport, c.Actor, c.Changed, err)
			}
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

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
