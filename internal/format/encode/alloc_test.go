package encode

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// FuzzString holds the strings against the library's, after whatever stood before.
func FuzzString(f *testing.F) {
	for _, s := range []string{"", "web", "té", "a\"b\\c\n", "\x7f", "\xff\xfe", strings.Repeat("x", 300)} {
		f.Add("before", s)
	}
	f.Fuzz(func(t *testing.T, before, s string) {
		text, found := bytes.CutPrefix(appendString([]byte(before), s), []byte(before))
		library, err := json.Marshal(s)
		if err != nil || !found || !utf8.Valid(text) {
			t.Fatalf("%q became %q, %v", s, text, err)
		}
		var got, want string
		if err := errors.Join(json.Unmarshal(text, &got), json.Unmarshal(library, &want)); err != nil || got != want {
			t.Errorf("%q became %s, which is %q: %v", s, text, got, err)
		}
	})
}

// TestAllocations is a bound of what an event costs: allocations are exact, where times are not. The one is the
// message's texts, which the receiver may keep.
func TestAllocations(t *testing.T) {
	const cluster = "prod-eu1"
	subject, err := NewSubject("k8s.{cluster}.{group}.{resource}.{namespace}.{name}", cluster)
	must(t, err)
	destinations := map[Transport]Destination{NATS: subject, Kafka: topic(t, "k8s.{cluster}.{resource}", cluster)}
	object := []byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"shop","uid":"u-1"}}`)
	pods := &change.Stream{Resource: change.Resource{Version: "v1", Name: "pods", Kind: "Pod"}}
	for _, stream := range []*change.Stream{pods, deployments()} {
		for _, op := range []change.Op{change.Added, change.Updated, change.Deleted} {
			rec := &change.Record{
				Stream: stream, Op: op, Key: change.Key{Namespace: "shop", Name: "web"}, UID: "u-1", ResourceVersion: "17",
				Object: object, Received: received(), Epoch: clusterUID + "~k3x9z2",
			}
			for _, o := range outlets() {
				encoder := NewEncoder(Options{
					Cluster: cluster, ClusterUID: clusterUID, Version: "v1", Format: o.format, Transport: o.kind,
					Destination: destinations[o.kind], Tombstones: o.kind == Kafka,
				})
				var messages []sink.Message
				got := testing.AllocsPerRun(100, func() {
					encoder.Reset()
					messages = encoded(encoder, messages[:0], rec)
				})
				if got > 1 {
					t.Errorf("%s %s, %s on %s: %v allocations an event, want one", stream, op, o.format, o.transport, got)
				}
			}
		}
	}
}

// TestPlainIsWhatEachByteSays has every byte at every place of a word, before it and after it, and then pairs of bytes
// side by side, of which none may hide the other.
func TestPlainIsWhatEachByteSays(t *testing.T) {
	check := func(text []byte) {
		want := true
		for _, c := range text {
			want = want && c >= ' ' && c < 0x7f && c != '"' && c != '\\'
		}
		if got := isPlain(text); got != want {
			t.Errorf("%q is plain: %v", text, got)
		}
	}
	const plain = "team-017/web-7d4b9c6"
	for c := range 256 {
		for at := range len(plain) {
			text := []byte(plain)
			text[at] = byte(c)
			check(text)
		}
		for next := range 256 {
			text := []byte(plain)
			text[3], text[4] = byte(c), byte(next)
			check(text)
		}
	}
}
