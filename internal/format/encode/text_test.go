package encode

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

func text4(t *testing.T, template string) *Text {
	t.Helper()
	parsed, err := NewText(template, "dev")
	must(t, err)
	return parsed
}

// TestI3AKeyIsThatOfTheObject in its records and its tombstone, and chooses the partition of its notes; what speaks of
// a stream has its own.
func TestI3AKeyIsThatOfTheObject(t *testing.T) {
	for template, want := range map[string]string{
		"{namespace}":                        "shop",
		"{cluster}/{resource}/{kind}/{name}": "dev/deployments.apps/Deployment/web",
		"all":                                "all",
	} {
		encoder := NewEncoder(Options{Cluster: "dev", ClusterUID: clusterUID, Transport: Kafka, Tombstones: true, Key: text4(t, template)})
		for name, rec := range records() {
			if rec.Key.Name != "web" {
				continue
			}
			for _, m := range encoded(encoder, nil, rec) {
				by := cmp.Or(string(m.Partition), string(m.Key))
				if by != want {
					t.Errorf("%s of %s is in the partition of %s, want %s", name, template, by, want)
				}
			}
		}
		if m := encoded(encoder, nil, records()["gap"])[0]; string(m.Key) != "/gap" {
			t.Errorf("the gap of a stream has the key %s", m.Key)
		}
	}
}

// TestHeadersAreBesideThoseOfTheFormat, where there is anything in them; other messages share the format's.
func TestHeadersAreBesideThoseOfTheFormat(t *testing.T) {
	rec := records()["updated"]
	rec.Object = []byte(`{"metadata":{"name":"web","labels":{"team":"é x"}}}`)
	headers := []Header{{"place", text4(t, "{cluster}/{namespace}")}, {"team", text4(t, "{label:team}")}, {"none", text4(t, "{label:none}")}}
	for transport, want := range map[Transport]string{Kafka: "place=dev/shop team=é x", NATS: "place=dev/shop team=%C3%A9%20x", File: ""} {
		for _, format := range []string{FormatCloudEvents, FormatCloudEventsBinary, FormatDebezium, FormatObject} {
			plain := NewEncoder(Options{Cluster: "dev", ClusterUID: clusterUID, Transport: transport, Format: format})
			encoder := NewEncoder(Options{Cluster: "dev", ClusterUID: clusterUID, Transport: transport, Format: format, Headers: headers})
			own := len(encoded(plain, nil, rec)[0].Headers)
			var got []string
			for _, h := range encoded(encoder, nil, rec)[0].Headers[own:] {
				got = append(got, h.Name+"="+h.Value)
			}
			if transport != File && strings.Join(got, " ") != want {
				t.Errorf("%s on %d: %q, want %s", format, transport, got, want)
			}
			gap := encoded(encoder, nil, records()["gap"])[0]
			for _, h := range gap.Headers {
				if h.Name == "team" {
					t.Errorf("%s: a gap of a stream has the header %s", format, h.Value)
				}
			}
		}
	}
}

// TestI9AHeaderHasTheLabelAsItIsTold: what rules have left of it, also of a delete whose last state nobody saw.
func TestI9AHeaderHasTheLabelAsItIsTold(t *testing.T) {
	encoder := NewEncoder(Options{Cluster: "dev", ClusterUID: clusterUID, Transport: Kafka, Headers: []Header{{"team", text4(t, "{label:team}")}}})
	for op, rec := range map[string]*change.Record{
		"updated": {Op: change.Updated, Object: []byte(`{"metadata":{"labels":{"team":"hmac-sha256:00"}}}`), Before: []byte(`{"metadata":{"labels":{"team":"bare"}}}`)},
		"deleted": {Op: change.Deleted, Before: []byte(`{"metadata":{"labels":{"team":"hmac-sha256:00"}}}`)},
	} {
		rec.Stream, rec.Key = deployments(), change.Key{Namespace: "shop", Name: "web"}
		headers := encoded(encoder, nil, rec)[0].Headers
		if last := headers[len(headers)-1]; last.Value != "hmac-sha256:00" {
			t.Errorf("%s has %v", op, headers)
		}
	}
}

// TestALabelCannotEndItsHeader: API servers bound labels, but an aggregated one need not.
func TestALabelCannotEndItsHeader(t *testing.T) {
	for _, label := range []string{"a\r\nNats-Rollup: all\r\n\r\n{}", "\x00\x7f\t", "50%", strings.Repeat("é", 2500)} {
		text, err := json.Marshal(label)
		must(t, err)
		rec := records()["updated"]
		rec.Object = fmt.Appendf(nil, `{"metadata":{"labels":{"team":%s}}}`, text)
		for _, transport := range []Transport{Kafka, NATS} {
			encoder := NewEncoder(Options{Cluster: "dev", ClusterUID: clusterUID, Transport: transport, Headers: []Header{{"team", text4(t, "{label:team}")}}})
			headers := encoded(encoder, nil, rec)[0].Headers
			got := headers[len(headers)-1].Value
			if transport == NATS {
				if strings.ContainsFunc(got, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
					t.Errorf("%.40q is %.60q on NATS", label, got)
				}
				if got, err = url.PathUnescape(got); err != nil {
					t.Fatal(err)
				}
			}
			if got != label {
				t.Errorf("%.40q comes as %.60q", label, got)
			}
		}
	}
}
