package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/encode"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// longNamed is an update of an object whose name no limit but etcd's bounds.
func longNamed(length int) *change.Record {
	rec := update(pods(), strings.Repeat("ä", length/2), 5)
	rec.Object = []byte(`{}`)
	return rec
}

func formats() []string {
	return []string{encode.FormatCloudEvents, encode.FormatCloudEventsBinary, encode.FormatDebezium, encode.FormatObject}
}

// Whoever may name an object must not stop a sink with the note that stands for it.
func TestI4NoteIsSmallWhateverTheName(t *testing.T) {
	subject, err := encode.NewSubject("k8s.{cluster}.{group}.{resource}.{namespace}.{name}", "c")
	if err != nil {
		t.Fatal(err)
	}
	rec := longNamed(300_000)
	rec.UID, rec.ResourceVersion = strings.Repeat("u", 9000), strings.Repeat("7", 9000)
	note := change.NoteOf(rec, "invalid", "0123")
	for _, format := range formats() {
		for transport, name := range map[encode.Transport]string{encode.File: "file", encode.NATS: "NATS", encode.Kafka: "Kafka"} {
			encoder := encode.NewEncoder(encode.Options{Cluster: "c", ClusterUID: clusterUID, Format: format, Transport: transport, Destination: subject})
			messages, err := encoder.Encode(t.Context(), nil, note)
			if err != nil {
				t.Fatal(err)
			}
			if len(messages) != 1 || messages[0].Size() > 8<<10 || len(messages[0].Destination) > 200 {
				t.Errorf("%s, %s: the note has %d bytes, and a subject of %d", name, format, messages[0].Size(), len(messages[0].Destination))
			}
		}
	}
	if name := change.NoteOf(update(pods(), strings.Repeat("n", change.MaxNamed), 5), "invalid", "").Key.Name; name != strings.Repeat("n", change.MaxNamed) {
		t.Errorf("a note of a usual name is of %q", name)
	}
}

// picky takes names of so many bytes at most.
type picky struct {
	memory
	most int
}

func (p *picky) Write(_ context.Context, batch []sink.Message) (sink.Mark, error) {
	for i := range batch {
		if id, err := change.ParseID(batch[i].ID); err == nil && len(id.Key.Name) > p.most {
			return p.append(batch[:i]), &sink.RejectedError{Index: i, Reason: "invalid", Err: errors.New("a long name")}
		}
	}
	return p.append(batch), nil
}

// A sink that does not take even a usual name, such as a topic of it, takes the hash.
func TestI4NoteThatIsRejectedNamesTheHash(t *testing.T) {
	for _, length := range []int{100, 2000, 300_000} {
		target := &picky{most: 80}
		r := newRig(t, sinkOf("s", target))
		rec := longNamed(length)
		if err := r.life(func(line *Inlet) {
			r.push(line, rec, update(pods(), "next", 6))
			r.drain(line, pods())
		}); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("%s/5/gap next/6/updated", change.NotesOf(rec.ID(clusterUID))[1].Key.Name)
		if got := target.short(); got != want {
			t.Errorf("%d bytes: got %s, want %s", length, got, want)
		}
	}
}

// The note in a log's tail is taken for the record whose name it does not say.
func TestI3NoteOfALongNameIsNotRepeated(t *testing.T) {
	for _, length := range []int{100, 300_000} {
		rec := longNamed(length)
		for _, note := range []*change.Record{change.NoteOf(rec, "invalid", ""), change.ShorterNote(change.NoteOf(rec, "invalid", ""))} {
			if note == nil {
				continue // it has the hash already
			}
			target := &memory{}
			r := crashed(t, target, note)
			before := target.short()
			if err := r.life(func(line *Inlet) {
				r.push(line, rec)
				r.drain(line, pods())
			}); err != nil || target.short() != before {
				t.Errorf("%d bytes: %v; log %.200s, want %.200s", length, err, target.short(), before)
			}
		}
	}
}
