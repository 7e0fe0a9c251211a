package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/format/decode"
	"github.com/kubecdc/kubecdc/internal/format/encode"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// quarterPast is a quarter past three local time.
func quarterPast() time.Time { return time.Date(2026, 11, 21, 15, 15, 0, 123e6, time.Local) }

// deployment and node are records of two objects.
func deployment(op change.Op, version, object string) *change.Record {
	return &change.Record{
		Stream: &change.Stream{Resource: change.Resource{Group: "apps", Version: "v1", Name: "deployments", Kind: "Deployment"}},
		Op:     op, Key: change.Key{Namespace: "shop", Name: "web"}, UID: "u1", ResourceVersion: version, Object: []byte(object), Received: quarterPast(),
	}
}

func node(op change.Op, object string) *change.Record {
	return &change.Record{
		Stream: &change.Stream{Resource: change.Resource{Version: "v1", Name: "nodes", Kind: "Node", ClusterScoped: true}},
		Op:     op, Key: change.Key{Name: "n1"}, UID: "u2", ResourceVersion: "1", Object: []byte(object), Received: quarterPast(),
	}
}

func frame(resource string, op change.Op, snapshot *change.Snapshot) *change.Record {
	r := change.Resource{Version: "v1", Name: resource, Kind: "Kind"}
	if resource == "deployments" {
		r.Group = "apps"
	}
	return &change.Record{Stream: &change.Stream{Resource: r}, Op: op, Snapshot: snapshot, ResourceVersion: snapshot.ResourceVersion, Received: quarterPast()}
}

// stored is what a sink's log has of the records.
func stored(t *testing.T, o encode.Options, records ...*change.Record) (all []*sink.Stored) {
	t.Helper()
	o.Cluster, o.ClusterUID = "dev", "0b6f3c1e-8a4d"
	encoder := encode.NewEncoder(o)
	for _, rec := range records {
		messages, err := encoder.Encode(t.Context(), nil, rec)
		must(t, err)
		for _, m := range messages {
			s := &sink.Stored{Key: m.Key, Headers: m.Headers, Value: m.Value, Time: m.Time}
			if o.Transport != encode.File {
				s.Headers = append(slices.Clone(s.Headers), sink.Header{Name: sink.HeaderID, Value: m.ID})
			}
			all = append(all, s)
		}
	}
	return all
}

// shown are the lines that a log of the messages makes.
func shown(t *testing.T, style Style, messages ...*sink.Stored) (*Log, []string) {
	t.Helper()
	var out bytes.Buffer
	log := &Log{Printer: NewPrinter(On(&out), style), Diff: true}
	must(t, log.Follow(t.Context(), logOf(messages)))
	return log, strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// logOf is a reader of the messages.
type logOf []*sink.Stored

func (l logOf) Read(_ context.Context, each func(*sink.Stored) error) error {
	for _, m := range l {
		if err := each(m); err != nil {
			return err
		}
	}
	return nil
}

func (l logOf) Close() error { return nil }

// life is what happens to two objects, as exporter dev shows it.
func life() []*change.Record {
	return []*change.Record{
		frame("deployments", change.SnapshotBegin, &change.Snapshot{ID: "7.1", Reason: change.Initial, ResourceVersion: "7"}),
		deployment(change.Replaced, "5", `{"metadata":{"resourceVersion":"5"},"spec":{"replicas":1}}`),
		deployment(change.Updated, "8", `{"metadata":{"resourceVersion":"8","generation":2},"spec":{"replicas":3}}`),
		deployment(change.Updated, "9", `{"metadata":{"resourceVersion":"9","generation":2},"spec":{"replicas":3},"status":{"observedGeneration":2}}`),
		deployment(change.Deleted, "10", `{"metadata":{"resourceVersion":"10"}}`),
		deployment(change.Added, "11", `{"spec":{"replicas":4}}`),
		node(change.Added, `{}`),
		frame("pods", change.Gap, &change.Snapshot{ID: "90.1", Reason: change.Gone, From: "7", ResourceVersion: "90"}),
		frame("pods", change.SnapshotEnd, &change.Snapshot{ID: "90.1", Reason: change.Gone, ResourceVersion: "90", Counts: change.Counts{Replaced: 1, Deleted: 2}}),
	}
}

// TestEveryFormatIsShownAlike: exporter dev --format debezium shows what exporter dev shows.
func TestEveryFormatIsShownAlike(t *testing.T) {
	records := life()
	_, want := shown(t, Style{Brief: true}, stored(t, encode.Options{Transport: encode.NATS}, records...)...)
	for _, o := range []encode.Options{
		{Format: encode.FormatCloudEvents, Transport: encode.File}, {Format: encode.FormatCloudEventsBinary, Transport: encode.NATS},
		{Format: encode.FormatDebezium, Transport: encode.NATS}, {Format: encode.FormatCloudEvents, Transport: encode.Kafka, Tombstones: true},
		{Format: encode.FormatDebezium, Transport: encode.Kafka, Tombstones: true},
	} {
		if _, lines := shown(t, Style{Brief: true}, stored(t, o, records...)...); !slices.Equal(lines, want) {
			t.Errorf("%+v\ngot  %s\nwant %s", o, strings.Join(lines, "\n"), strings.Join(want, "\n"))
		}
	}
}

// TestWhatIsAsDeepAsTheAPIServerTakesIsShown, with what changed in it, and the patch of it without the patch, which no
// reader of JSON takes.
func TestWhatIsAsDeepAsTheAPIServerTakesIsShown(t *testing.T) {
	deep := func(leaf string) string {
		return strings.Repeat(`{"a":[`, 5_000) + leaf + strings.Repeat("]}", 5_000)
	}
	patched := deployment(change.Updated, "3", deep("3"))
	patched.Patch, patched.Base = []byte(`[{"op":"replace","path":"/a","value":`+strings.TrimSuffix(strings.TrimPrefix(deep("3"), `{"a":`), "}")+`}]`), "2"
	for _, format := range []string{encode.FormatCloudEvents, encode.FormatDebezium} {
		for _, style := range []Style{{JSON: true}, {Brief: true}, {}} {
			messages := stored(t, encode.Options{Format: format, Transport: encode.File},
				deployment(change.Added, "1", deep("1")), deployment(change.Updated, "2", deep("2")), patched)
			_, lines := shown(t, style, messages...)
			if n := strings.Count(strings.Join(lines, "\n"), "web"); n < 3 {
				t.Errorf("%s %+v: %d changes of 3 are shown", format, style, n)
			}
		}
	}
}

// TestI6DeletedObjectsAreForgotten: it runs for days.
func TestI6DeletedObjectsAreForgotten(t *testing.T) {
	log, _ := shown(t, Style{Brief: true}, stored(t, encode.Options{},
		deployment(change.Added, "1", `{"a":1}`), deployment(change.Deleted, "2", `{"a":1}`), node(change.Deleted, `null`))...)
	if log.versions.Len() != 0 {
		t.Errorf("remembers %v", log.versions.Keys())
	}
}

func TestI6SoManyObjectsAreRemembered(t *testing.T) {
	v := newVersions()
	for i := range mostRemembered + 10 {
		v.compare(&decode.Change{ID: change.ID{UID: fmt.Sprint(i), Op: change.Added}, Object: []byte(`{}`)})
	}
	if v.Len() != mostRemembered {
		t.Errorf("remembers %d objects, want %d", v.Len(), mostRemembered)
	}
}

func TestDifferencesNamePaths(t *testing.T) {
	object := func(text string) any { return map[string]any{"a": map[string]any{"b": text, "list": []any{1.0, text}}} }
	for _, c := range []struct {
		name          string
		before, after any
		want          []string
	}{
		{"the same", object("x"), object("x"), nil},
		{"in depth and in a list", object("x"), object("y"), []string{`a.b: "x" -> "y"`, `a.list[1]: "x" -> "y"`}},
		{"a list that grows", map[string]any{"k": []any{"x"}}, map[string]any{"k": []any{"x", "y"}}, []string{`k: ["x"] -> ["x","y"]`}},
		{"added key", map[string]any{}, map[string]any{"k": true}, []string{"k: none -> true"}},
		{"a key with a dot", map[string]any{"l": map[string]any{"a.b/c": 1.0}}, map[string]any{"l": map[string]any{}}, []string{"l['a.b/c']: 1 -> none"}},
		{"removed object", map[string]any{"k": map[string]any{"v": 1.0}}, map[string]any{}, []string{`k: {"v":1} -> none`}},
		{"long value", map[string]any{"k": strings.Repeat("ä", 30)}, map[string]any{"k": nil}, []string{`k: "` + strings.Repeat("ä", 22) + `… -> none`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := shorten(compareObjects("pods", c.before, c.after)); !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestShortenLeavesOutWhatAlwaysChanges(t *testing.T) {
	var all []difference
	for _, path := range []string{"a", "status.observedGeneration", "b", "c", "d", "e"} {
		all = append(all, difference{path, nil, json.RawMessage("1")})
	}
	if got, want := shorten(all), []string{"a: none -> 1", "b: none -> 1", "c: none -> 1", "and 2 more"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	before := parseObject([]byte(`{"metadata":{"resourceVersion":"1","generation":1,"managedFields":[1]}}`))
	after := parseObject([]byte(`{"metadata":{"resourceVersion":"2","generation":2,"managedFields":[2]}}`))
	if found := compareObjects("pods", before, after); len(found) != 0 {
		t.Errorf("found %v", found)
	}
}
