package e2e

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// sinkOfStream is the name that the exporter gives its only JetStream sink.
const sinkOfStream = "nats"

// narrow is the limit of the stream, in bytes, and wide the size of an object above it, and above Kafka's default, as
// the API server writes it; etcd has it in less than half.
const (
	narrow = 512 << 10
	wide   = 2 << 20
)

// resizeStream sets the size of the largest message that the stream takes; -1 is any.
func (r *rig) resizeStream(limit int32) {
	r.t.Helper()
	js := r.broker.open().js
	stream, err := js.Stream(r.t.Context(), streamName)
	if err != nil {
		r.t.Fatal(err)
	}
	config := stream.CachedInfo().Config
	config.MaxMsgSize = limit
	if _, err := js.UpdateStream(r.t.Context(), config); err != nil {
		r.t.Fatal(err)
	}
}

// huge makes a ConfigMap that is too large for the narrowed stream.
func (r *rig) huge(name string) *unstructured.Unstructured {
	r.t.Helper()
	manifest := coreObject("ConfigMap", name, nil)
	manifest["data"] = map[string]any{"text": strings.Repeat("é<", wide/len(`é\u003c`))}
	return r.create(core("configmaps"), "shop", manifest)
}

// letter is a line of exporter deadletter list.
type letter struct{ ID, Sink, Reason, Event, Name, ResourceVersion, Op string }

func (r *rig) letters() []letter {
	r.t.Helper()
	return decoded[letter](r.t, r.command("deadletter", "list", "-o", "json"))
}

// told is what stands in the stream for the object, in order: operations, and replays as such.
func (r *rig) told(uid string) string {
	r.t.Helper()
	return r.toldTo(r.stream, uid)
}

// toldTo is what stands in the sink.
func (r *rig) toldTo(sink *follower, uid string) string {
	r.t.Helper()
	var told []string
	for _, e := range sink.all(r.t) {
		if e.UID == uid {
			told = append(told, strings.TrimSuffix(e.op()+" "+e.Replayed, " "))
		}
	}
	return strings.Join(told, ", ")
}

// sequence is what a sink tells of ConfigMaps, in order, without saying how.
func sequence(events []event) []string {
	var all []string
	for i := range events {
		if e := &events[i]; e.kind() == "configmaps" && e.Name != "" && e.Replayed == "" {
			all = append(all, e.key()+" "+e.ResourceVersion)
		}
	}
	return all
}

// TestI4WhatAStreamDoesNotTakeIsKeptAndSentAgain: everything else goes on meanwhile, in both sinks. A kill between
// letter and note repeats neither.
func TestI4WhatAStreamDoesNotTakeIsKeptAndSentAgain(t *testing.T) {
	r, network := newProxiedRig(t, world{})
	r.writer.populate(t)
	r.exporter.start(t)
	r.await(r.writer.finish(t)...)
	r.resizeStream(narrow)
	first, second := r.huge("huge-1"), r.huge("huge-2")
	second.Object["data"] = map[string]any{"text": "small"}
	if _, err := r.client.Resource(core("configmaps")).Namespace("shop").Update(t.Context(), second, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	r.writer.disturb(t)
	r.await(r.writer.finish(t)...)

	if got, want := sequence(r.stream.all(t)), sequence(r.file.all(t)); !slices.Equal(got, want) {
		t.Errorf("the stream tells of\n%q\nthe file of\n%q", got, want)
	}
	if got := r.told(string(first.GetUID())); got != "gap" {
		t.Errorf("of the first one the stream tells %q", got)
	}
	letters := r.letters()
	if len(letters) != 2 || letters[0].Name != "huge-1" || letters[1].Name != "huge-2" || letters[0].Reason != "too_large" || letters[0].Sink != sinkOfStream {
		t.Fatalf("letters are %+v", letters)
	}
	r.compareLetter(letters[0])

	r.resizeStream(-1)
	if out := r.command("deadletter", "replay", "--sink", sinkOfStream, "--id", letters[0].ID); !strings.Contains(out, "delivered") {
		t.Errorf("replay says %s", out)
	}
	if got := r.told(string(first.GetUID())); got != "gap, added current" {
		t.Errorf("of the first one the stream tells %q", got)
	}
	r.superseded(letters[1])
	if left := r.letters(); len(left) != 1 || left[0].ID != letters[1].ID {
		t.Errorf("left are %+v", left)
	}
	r.command("deadletter", "replay", "--force")
	if got := r.told(string(second.GetUID())); got != "gap, updated, added history" {
		t.Errorf("of the second one the stream tells %q", got)
	}
	if left := r.letters(); len(left) != 0 {
		t.Errorf("left are %+v", left)
	}
	r.killBetweenLetterAndNote(network)
}

// compareLetter holds the whole letter to what the other sink took.
func (r *rig) compareLetter(l letter) {
	r.t.Helper()
	var shown struct {
		Value struct{ Data json.RawMessage }
	}
	if err := json.Unmarshal([]byte(r.command("deadletter", "show", l.ID)), &shown); err != nil {
		r.t.Fatal(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, shown.Value.Data); err != nil {
		r.t.Fatal(err)
	}
	noted := false
	for _, e := range r.stream.events {
		noted = noted || e.op() == "gap" && strings.Contains(string(e.Data), `"rejected":"too_large","deadLetter":"`+l.ID+`"`)
	}
	if !noted {
		r.t.Errorf("no gap of the stream names letter %s", l.ID)
	}
	for _, e := range r.file.events {
		if e.ID == l.Event {
			if !bytes.Equal(compact.Bytes(), e.Data) {
				r.t.Errorf("the letter has %.200s, the file %.200s", &compact, e.Data)
			}
			return
		}
	}
	r.t.Errorf("the file has no event %s", l.Event)
}

// superseded asks for a letter that is history, and is told so.
func (r *rig) superseded(l letter) {
	r.t.Helper()
	o := r.run("deadletter", "replay", "--id", l.ID)
	if o.Code != 1 || o.Stderr != "exporter: 1 of 1 letters are kept\n" || !strings.Contains(o.Stdout, "kept: superseded: the object is at version ") {
		r.t.Errorf("replay says %+v", o)
	}
}

// killBetweenLetterAndNote: the network takes no note until the exporter is dead.
func (r *rig) killBetweenLetterAndNote(network *proxy) {
	t := r.t
	t.Helper()
	r.resizeStream(narrow)
	r.exporter.stop(t)
	r.exporter.start(t) // it knows the limit
	r.await(r.writer.finish(t)...)
	network.allow(0)
	huge := r.huge("huge")
	eventually(t, deliveryLimit, "there is a letter", func() bool { return len(r.letters()) == 1 })
	r.exporter.process.Kill()
	network.reset()
	network.allow(-1)
	if got := r.told(string(huge.GetUID())); got != "" {
		t.Fatalf("before the kill the stream tells %q", got)
	}
	r.exporter.start(t)
	r.await(string(huge.GetUID()))
	r.exporter.process.Kill() // and once more, with the note in the log
	r.exporter.start(t)
	r.await(r.writer.finish(t)...)
	r.exporter.stop(t)
	if got := r.told(string(huge.GetUID())); got != "gap" {
		t.Errorf("the stream tells %q", got)
	}
	if got, want := sequence(r.stream.all(t)), sequence(r.file.all(t)); !slices.Equal(got, want) {
		t.Errorf("the stream tells of\n%q\nthe file of\n%q", got, want)
	}
	if letters := r.letters(); len(letters) != 1 || letters[0].Name != "huge" {
		t.Errorf("letters are %+v", letters)
	}
}
