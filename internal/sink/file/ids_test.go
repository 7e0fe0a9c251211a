package file

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/format/encode"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// TestI3ObjectsHaveNoIDsInATail: a custom resource may have any field at its top, also an id of another change. In the
// formats that a file takes, what counts is the envelope's alone: the object is within it.
func TestI3ObjectsHaveNoIDsInATail(t *testing.T) {
	const cluster, foreignID = "0b6f3c1e", "0b6f3c1e/pods/shop/next/u-9/9/updated"
	stream := &change.Stream{Resource: change.Resource{Group: "example.com", Version: "v1", Name: "widgets", Kind: "Widget"}}
	for _, format := range config.LineFormats() {
		t.Run(format, func(t *testing.T) {
			encoder := encode.NewEncoder(encode.Options{Cluster: "c", ClusterUID: cluster, Format: format, Transport: encode.File})
			var batch []sink.Message
			var want []string
			for n, op := range []change.Op{change.Added, change.Updated, change.Deleted, change.Replaced, change.Sync} {
				key := change.Key{Namespace: "shop", Name: fmt.Sprint("w", n)}
				foreign := (&change.Record{Stream: stream, Op: change.Updated, Key: change.Key{Namespace: "shop", Name: "next"}, UID: "u-9", ResourceVersion: "9"}).ID(cluster).String()
				object := []byte(fmt.Sprintf(`{"id":%q,"specversion":"1.0","op":"u","apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":%q,"id":%q,"labels":{"id":%q}},"id":%q,"data":{"id":%q}}`,
					foreign, key.Name, foreign, foreign, foreign, foreign))
				rec := &change.Record{Stream: stream, Op: op, Key: key, UID: "u-1", ResourceVersion: "7", Object: object, Before: object}
				if op == change.Replaced || op == change.Sync {
					rec.Snapshot = &change.Snapshot{ID: "7.1", Reason: change.Requested, ResourceVersion: "7"}
				}
				var err error
				if batch, err = encoder.Encode(t.Context(), batch, rec); err != nil {
					t.Fatal(err)
				}
				want = append(want, rec.ID(cluster).String())
			}
			o := Options{Path: filepath.Join(t.TempDir(), "out.ndjson")}
			l, _ := mustOpen(t, o, "")
			begin := mustWrite(t, l, []sink.Message{{Value: []byte("{}")}})
			mustWrite(t, l, batch)
			mustClose(t, l)
			if _, found := mustOpen(t, o, begin); !slices.Equal(found, want) {
				t.Errorf("found %q, want %q", found, want)
			}
		})
	}
	deep := strings.Repeat("[", 9_999) + strings.Repeat("]", 9_999) // an API server takes one bracket more
	if got := idOf([]byte(`{"before":null,"after":{"a":` + deep + `},"id":"` + foreignID + `"}`)); got != foreignID {
		t.Errorf("after an object as deep as the API server takes is id %q", got)
	}
	for _, bare := range []string{encode.FormatObject, encode.FormatCloudEventsBinary} {
		if slices.Contains(config.LineFormats(), bare) {
			t.Errorf("a file takes %s, whose lines are objects", bare)
		}
	}
}
