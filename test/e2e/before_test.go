package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestI5BeforeIsWhatWasDeliveredLast: whatever kills the exporter and wherever, each update says how the object was in
// the record before it, byte for byte, and each delete that no watch saw carries the last state that the sink was
// given. Only of what was told about the time of a kill some say nothing.
func TestI5BeforeIsWhatWasDeliveredLast(t *testing.T) {
	r := newRigOf(t, world{})
	r.keepBefore()
	r.writer.populate(t)
	r.writer.start(t)
	r.exporter.start(t)
	r.file.awaitMore(t, r.exporter, 500)
	r.exporter.process.Kill()
	r.killAtRandom(kills(t, 6))
	r.settle()
	r.exporter.stop(t)
	killed := r.images()
	deleted := r.changeAndForget()
	r.exporter.start(t)
	r.streaming()
	r.expectGap(1, deleted)
	r.exporter.stop(t)
	r.judge(true)

	for name, images := range r.images() {
		updates, unseen := checkImages(t, name, images, len(killed[name]))
		if updates < 50 || unseen < len(deleted) {
			t.Errorf("sink %s: %d updates and %d unseen deletes have an object before; want more, and %d deletes", name, updates, unseen, len(deleted))
		}
	}
	r.checkSnapshots(readEnvelopes(t, r.envelopes()))
}

// images is what the records of objects in each sink say of them.
func (r *rig) images() map[string][]image {
	r.t.Helper()
	return map[string][]image{
		"stream": imagesOf(r.stream.all(r.t)), "file": imagesOf(r.file.all(r.t)), "envelopes": readEnvelopes(r.t, r.envelopes()),
	}
}

// keepBefore makes the exporter keep objects, and write envelopes to another file.
func (r *rig) keepBefore() {
	r.t.Helper()
	var text strings.Builder
	text.WriteString("resources:\n")
	for _, resource := range r.resources() {
		fmt.Fprintf(&text, "- {resource: %s, before: true}\n", kubectlName(resource))
	}
	fmt.Fprintf(&text, "sinks:\n- {name: nats, nats: {url: %q, stream: %s}}\n", "nats://"+r.broker.address(), streamName)
	fmt.Fprintf(&text, "- {name: file, file: {path: %q}}\n- {name: envelopes, file: {path: %q}, format: debezium}\n", r.path(), r.envelopes())
	r.configured(text.String())
}

func (r *rig) envelopes() string { return filepath.Join(r.dir, "envelopes.ndjson") }

// image is what one record of an object says of its states.
type image struct {
	what          string // for a failure's text
	resource, uid string
	op            string // a letter of Debezium's
	before, after []byte // nil where there is none
	unseen        bool   // a delete that no watch saw
	snapshot      string // of an envelope
}

func imagesOf(events []event) []image {
	letters := map[string]string{"added": "c", "updated": "u", "deleted": "d", "replaced": "r", "sync": "r"}
	var images []image
	for i := range events {
		e := &events[i]
		if e.UID == "" || letters[e.op()] == "" {
			continue
		}
		im := image{what: e.String(), resource: e.kind(), uid: e.UID, op: letters[e.op()], after: e.Data, unseen: e.FinalStateUnknown}
		if im.op == "d" {
			im.before, im.after = e.Data, nil
		} else if e.Before != "" {
			im.before = []byte(e.Before)
		}
		images = append(images, im)
	}
	return images
}

func readEnvelopes(t *testing.T, path string) []image {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var images []image
	for line := range bytes.Lines(text) {
		var e struct {
			Before, After json.RawMessage
			Op, ID        string
			Source        struct{ Snapshot, Resource, UID string }
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%v in %.200s", err, line)
		}
		if e.Op == "m" {
			continue
		}
		im := image{what: e.ID, resource: e.Source.Resource, uid: e.Source.UID, op: e.Op, snapshot: e.Source.Snapshot}
		if string(e.Before) != "null" {
			im.before = e.Before
		}
		if string(e.After) != "null" {
			im.after = e.After
		}
		im.unseen = im.op == "d" && im.snapshot != "false"
		images = append(images, im)
	}
	return images
}

// checkImages follows each object through the records, the first ones of a time in which the exporter was killed, and
// counts those that had to say how it was.
func checkImages(t *testing.T, sink string, images []image, killed int) (updates, unseen int) {
	t.Helper()
	given := map[string][]string{}  // by object: its states in the sink
	lastKilled := map[string]bool{} // by object: the last of them is of a time with kills
	expected, silent := 0, 0        // updates that are to say how the object was, and those that do not
	for i := range images {
		im := &images[i]
		id := im.resource + " " + im.uid
		isSilent := (len(im.before) == 0 || im.isStandIn()) && lastKilled[id]
		if im.op == "u" && len(given[id]) > 0 {
			if expected++; isSilent {
				silent++
			}
		}
		if !isSilent && !im.fits(given[id], i < killed) {
			t.Errorf("sink %s: %s\nbefore is %s\nthe sink was given %q", sink, im.what, im.before, given[id])
		}
		switch {
		case im.op == "u":
			updates++
		case im.unseen && i >= killed:
			unseen++
		}
		lastKilled[id] = i < killed
		if given[id] = append(given[id], string(im.after)); im.op == "d" {
			delete(given, id)
		}
	}
	if silent*10 > expected {
		t.Errorf("sink %s: %d of %d updates do not say how the object was", sink, silent, expected)
	}
	return updates, unseen
}

// fits says whether the record is right about how the object was. After a kill a reconcile knows it as it was saved:
// what the sink was given between that and the kill is in its own log alone.
func (im *image) fits(states []string, killed bool) bool {
	before, last := string(im.before), ""
	if len(states) > 0 {
		last = states[len(states)-1]
	}
	reconciled := im.unseen || im.op == "r" && im.before != nil
	switch {
	case reconciled && killed:
		return before == "" || im.isStandIn() || slices.Contains(states, before)
	case im.op == "u" && last == "": // it comes before the snapshot
		return before == "" || im.isStandIn()
	case reconciled, im.op == "u":
		return last != "" && before == last
	}
	return true
}

// isStandIn says whether before has the object's identity alone. The API server gives every object a time.
func (im *image) isStandIn() bool { return !bytes.Contains(im.before, []byte("creationTimestamp")) }

// checkSnapshots wants a last record of the reconcile after the gap of each resource, and nothing of it after that.
// The watch goes on beside it.
func (r *rig) checkSnapshots(images []image) {
	r.t.Helper()
	last, open := map[string]int{}, map[string]bool{}
	for _, im := range images {
		switch im.snapshot {
		case "true":
			open[im.resource] = true
		case "last":
			last[im.resource]++
			open[im.resource] = false
		}
	}
	for _, resource := range r.resources() {
		if name := kubectlName(resource); last[name] < 1 || open[name] {
			r.t.Errorf("%s has %d last records of snapshots, and one that has none: %t", name, last[name], open[name])
		}
	}
}
