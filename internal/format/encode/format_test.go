package encode

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

func formatEncoder(format string, transport Transport) *Encoder {
	return NewEncoder(Options{
		Cluster: "prod-eu1", ClusterUID: clusterUID, Version: "v1", Format: format, Transport: transport, Tombstones: transport == Kafka,
	})
}

func transports() map[string]Transport {
	return map[string]Transport{"file": File, "nats": NATS, "kafka": Kafka}
}

// text shows messages as a golden file has them.
func text(messages []sink.Message) string {
	var b strings.Builder
	for i, msg := range messages {
		if i > 0 {
			b.WriteString("---\n")
		}
		fmt.Fprintf(&b, "key: %s\n", msg.Key)
		for _, h := range msg.Headers {
			fmt.Fprintf(&b, "%s: %s\n", h.Name, h.Value)
		}
		if msg.Value == nil {
			b.WriteString("no value\n")
		} else {
			fmt.Fprintf(&b, "value: %s\n", msg.Value)
		}
	}
	return b.String()
}

func TestFormatGoldens(t *testing.T) {
	for _, format := range []string{FormatCloudEventsBinary, FormatDebezium, FormatObject} {
		for transport, kind := range transports() {
			if kind == File && format != FormatDebezium {
				continue // has no line of its own
			}
			encoder := formatEncoder(format, kind)
			for name, rec := range records() {
				if rec.Patch != nil && format != FormatCloudEventsBinary {
					continue // is given none
				}
				t.Run(format+"/"+transport+"/"+name, func(t *testing.T) {
					encoder.Reset()
					same(t, filepath.Join("testdata", format, transport, name+".txt"), text(encoded(encoder, nil, rec)))
				})
			}
		}
	}
}

// The two modes of CloudEvents say the same.
func TestBinaryModeHasTheAttributesOfStructuredMode(t *testing.T) {
	structured := formatEncoder(FormatCloudEvents, NATS)
	for transport, prefix := range map[Transport]string{NATS: "ce-", Kafka: "ce_"} {
		encoder := formatEncoder(FormatCloudEventsBinary, transport)
		for name, rec := range records() {
			var want map[string]any
			must(t, json.Unmarshal(encoded(structured, nil, rec)[0].Value, &want))
			msg := encoded(encoder, nil, rec)[0]
			data, _ := json.Marshal(want["data"])
			if want["data"] != nil && !jsonEqual(data, msg.Value) || want["data"] == nil && (len(msg.Value) != 0 || msg.Value == nil) {
				t.Errorf("%s: value is %q, want %s", name, msg.Value, data)
			}
			delete(want, "data")
			for _, h := range msg.Headers {
				if strings.HasPrefix(h.Name, "kubecdc-") {
					continue // of every format
				}
				attribute := strings.TrimPrefix(h.Name, prefix)
				if h.Name == "content-type" {
					attribute = "datacontenttype"
				}
				value := h.Value
				if transport == NATS {
					value, _ = url.PathUnescape(value)
				}
				if got := fmt.Sprint(want[attribute]); got != value {
					t.Errorf("%s: header %s is %q, want %q", name, h.Name, value, got)
				}
				delete(want, attribute)
			}
			delete(want, "group") // of the core group empty
			if len(want) > 0 {
				t.Errorf("%s: attributes without a header: %v", name, want)
			}
		}
	}
}

func jsonEqual(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && fmt.Sprint(x) == fmt.Sprint(y)
}

// Readers of changelogs, such as Flink's debezium-json, refuse an update or a delete whose before is null.
func TestDebeziumUpdatesAndDeletesHaveABefore(t *testing.T) {
	encoder := formatEncoder(FormatDebezium, NATS)
	for name, rec := range records() {
		var envelope struct {
			Before, After map[string]any
			Source        map[string]any
			Op, ID        string
			TsMs          int64 `json:"ts_ms"`
		}
		value := encoded(encoder, nil, rec)[0].Value
		if !rec.Op.OfObject() {
			if len(value) != 0 {
				t.Errorf("%s: a record without an object is %s", name, value)
			}
			continue
		}
		must(t, json.Unmarshal(value, &envelope))
		needsBefore, needsAfter := envelope.Op == "u" || envelope.Op == "d", envelope.Op != "d"
		if (envelope.Before != nil) != needsBefore || (envelope.After != nil) != needsAfter {
			t.Errorf("%s: op %s has before %v and after %v", name, envelope.Op, envelope.Before, envelope.After)
		}
		if id, _ := change.ParseID(envelope.ID); id.Key != rec.Key {
			t.Errorf("%s: id is %s", name, envelope.ID)
		}
		want := fmt.Sprint(rec.Snapshot != nil)
		if rec.Last {
			want = "last"
		}
		if envelope.Source["snapshot"] != want || envelope.TsMs != rec.Received.UnixMilli() {
			t.Errorf("%s: source %v, ts_ms %d", name, envelope.Source, envelope.TsMs)
		}
	}
}

// TestMessagesOfABatchDoNotOverwriteEachOther, neither their values nor their headers, also where buffers are used
// again.
func TestMessagesOfABatchDoNotOverwriteEachOther(t *testing.T) {
	for _, format := range []string{FormatCloudEvents, FormatCloudEventsBinary} {
		encoder := formatEncoder(format, Kafka)
		for range 3 {
			encoder.Reset()
			batch := encoded(encoder, nil, records()["updated"])
			first := text(batch)
			for range 100 {
				batch = encoded(encoder, batch, records()["odd"])
			}
			if got := text(batch[:1]); got != first {
				t.Fatalf("the first message became\n%s, was\n%s", got, first)
			}
		}
	}
}
