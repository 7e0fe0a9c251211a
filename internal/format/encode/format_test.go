package encode

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

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
