package console

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/format/encode"
	"github.com/kubecdc/kubecdc/internal/observe/verify"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/deadletter"
)

// TestWhatIsShown compares what people are shown with testdata/shown.txt, which UPDATE_GOLDEN=1 writes.
func TestWhatIsShown(t *testing.T) {
	var all strings.Builder
	for _, c := range []struct {
		what  string
		shows func(t *testing.T) string
	}{
		{"tail of changes", changed}, {"tail of patches", patched}, {"tail as JSON", asJSON}, {"tail of a log that lacks a resource", lacking},
		{"tail of what is not ours", foreign}, {"dev", func(t *testing.T) string {
			_, lines := shown(t, Style{Brief: true}, stored(t, encode.Options{Transport: encode.NATS}, life()...)...)
			return strings.Join(lines, "\n")
		}},
		{"tables", tables},
	} {
		fmt.Fprintf(&all, "== %s\n%s\n", c.what, strings.TrimRight(c.shows(t), "\n"))
	}
	got, golden := strings.ReplaceAll(all.String(), "\x1b", "ESC"), filepath.Join("testdata", "shown.txt")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		must(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want, err := os.ReadFile(golden)
	must(t, err)
	if got != string(want) {
		t.Errorf("shown is\n%s\nwant\n%s", got, want)
	}
}

func changed(t *testing.T) string {
	return printed(t, Style{Colour: true},
		changeOf(change.Added, "deployments.apps", "1", `{"metadata":{"resourceVersion":"1"},"spec":{"replicas":12345678901234567890,"containers":[{"image":"a"}],"old":true}}`),
		changeOf(change.Updated, "deployments.apps", "2", `{"metadata":{"resourceVersion":"2","labels":{"a.b/c":"x"}},"spec":{"replicas":12345678901234567891,"containers":[{"image":"b"}]}}`),
		changeOf(change.Deleted, "deployments.apps", "3", `{}`), changeOf(change.Added, "deployments.apps", "4", `{"spec":{}}`))
}

func patched(t *testing.T) string {
	return printed(t, Style{},
		patchOf("pods", "1", "0", `[{"op":"replace","path":"/spec/n","value":0}]`), // nobody knows of what
		changeOf(change.Added, "pods", "2", `{"metadata":{"resourceVersion":"2"},"spec":{"n":12345678901234567890,"old":true}}`),
		patchOf("pods", "3", "2", `[{"op":"replace","path":"/metadata/resourceVersion","value":"3"},{"op":"replace","path":"/spec/n","value":12345678901234567891}]`),
		patchOf("pods", "4", "3", `[{"op":"remove","path":"/spec/old"}]`),
		patchOf("pods", "6", "5", `[{"op":"replace","path":"/spec/n","value":6}]`), // of a version that is not here
		patchOf("pods", "7", "6", `[{"op":"replace","path":"/spec/n","value":7}]`),
		changeOf(change.Sync, "pods", "8", `{"spec":{"n":8}}`),
		patchOf("pods", "9", "8", `[{"op":"replace","path":"/spec/n","value":9}]`),
		patchOf("pods", "10", "9", `{}`), patchOf("pods", "11", "10", `[{"op":"remove","path":"/no"}]`))
}

func asJSON(t *testing.T) string {
	deleted, gap := changeOf(change.Deleted, "deployments.apps", "3", `{"spec":{"replicas":3}}`), changeOf(change.Gap, "deployments.apps", "4", "")
	deleted.Snapshot, deleted.FinalStateUnknown = "300.1", true
	gap.Object, gap.Data = nil, []byte(`{"reason":"gone"}`)
	return printed(t, Style{JSON: true, Colour: true}, deleted, gap, patchOf("pods", "7", "6", `[{"op":"remove","path":"/a"}]`))
}

// lacking asks for a name that records do not have, and for two that they have.
func lacking(t *testing.T) string {
	records := stored(t, encode.Options{Transport: encode.NATS}, deployment(change.Added, "1", `{}`), node(change.Added, `{}`))
	out := new(bytes.Buffer)
	for _, asked := range []string{"deploy", "nodes", "deployments"} {
		log := &Log{Printer: NewPrinter(On(out), Style{}), Filter: Filter{Resources: []string{asked}}}
		must(t, log.Follow(t.Context(), logOf(records)))
	}
	return out.String()
}

func foreign(t *testing.T) string {
	damaged := &sink.Stored{Place: "line 7", Headers: []sink.Header{{Name: sink.HeaderID, Value: "0b6f3c1e/pods/shop/web/u-1/12/updated"}}, Value: []byte(`{"a`)}
	_, lines := shown(t, Style{Brief: true}, &sink.Stored{Value: []byte("hello")}, damaged)
	return strings.Join(lines, "\n")
}

func tables(t *testing.T) string {
	out := new(bytes.Buffer)
	owed := []control.Owed{
		{ID: "1", Sink: "bus", Stream: "nodes", Reason: "requested", State: control.Waits},
		{ID: "2", Sink: "bus", Stream: "pods", Reason: "requested", State: control.Reads, Objects: 70, Percent: new(7)},
		{ID: "3", Sink: "lake", Stream: "nodes", Reason: "requested", State: control.Waits},
		{ID: "4", Sink: "lake", Stream: "pods", Reason: "resync", State: control.Delivers, Objects: 12},
	}
	must(t, PrintOwed(owed, false, out))
	must(t, PrintOwed(owed[1:2], true, out))
	must(t, PrintState(&control.State{
		Cluster: "dev", ClusterUID: "c", Marks: map[string]string{"bus": "12"},
		Streams: map[string]control.StreamState{"pods": {Sinks: map[string]control.SinkState{
			"bus": {ResourceVersion: "7", Objects: 1}, "lake": {ResourceVersion: "5", Objects: 2, Comparing: "gone"},
		}}},
		Owed: []control.Owed{
			{Sink: "bus", Stream: "pods", Reason: "resync"},
			{Sink: "bus", Stream: "pods", Reason: "requested", Limits: change.Limits{Namespace: "shop", Selector: "app=web"}, State: control.Paused},
		},
	}, out))
	must(t, PrintSnapshots(map[string]control.LastSnapshot{"pods": {Reason: "requested", ResourceVersion: "7", Counts: change.Counts{Synced: 3, Replaced: 1}}}, out))
	must(t, PrintTable(out, [][]any{{"TASK", "NOTE"}, {"1\n2\tx", "no\x1b[31m"}})) // whoever may write a Lease makes no row
	kept, err := PrintReplayed(&control.Replayed{Letters: []control.ReplayedLetter{
		{Sink: "bus", ID: "1", Stream: "pods", Object: "n/a", ResourceVersion: "7", Delivered: true}, {Sink: "bus", ID: "2", Kept: "superseded"},
		{Sink: "bus", ID: "3", Delivered: true, LeftOut: ".data"},
	}}, out)
	fmt.Fprintln(out, kept, err)
	letters := func(yield func(*deadletter.Letter, error) bool) {
		for _, letter := range []*deadletter.Letter{{ID: "1", Sink: "bus", Reason: "too_large", Stream: "pods", Namespace: "n", Name: "a", Time: time.Unix(0, 0).UTC()}, nil} {
			var err error
			if letter == nil {
				err = errors.New("letter 2 is damaged")
			}
			yield(letter, err)
		}
	}
	n, err := PrintLetters(letters, false, out)
	fmt.Fprintln(out, n, err)
	r := &Reports{Out: out}
	row := verify.Row{Result: verify.Result{Stream: "pods", ResourceVersion: "20", Objects: 2, Equal: 1, Missing: 1, Changing: 1, Differences: []verify.Difference{
		{Kind: verify.Missing, Stream: "pods", Name: "a", ClusterVersion: "7"}, {Kind: verify.Extra, Stream: "pods", Name: "b", SinkVersion: "5", Place: "t"},
	}}}
	must(t, r.Show(&verify.Report{Sink: "bus", Kind: "nats", Records: 9, Foreign: 2, Streams: []verify.Row{row}, Note: "why"}))
	must(t, r.ShowDigests(&verify.DigestReport{Sink: "bus", Kind: "nats", Records: 9, Digests: 3, Mismatch: []verify.DigestDiffers{
		{Cluster: "c", Resource: "pods", At: time.Unix(9, 0), Objects: 1, Want: 2, Times: 1}, {Cluster: "c", Resource: "nodes", After: time.Unix(5, 0), At: time.Unix(9, 0)},
	}}))
	must(t, r.ShowDigests(&verify.DigestReport{Sink: "bus", Kind: "nats", Equal: true}))
	return out.String()
}
