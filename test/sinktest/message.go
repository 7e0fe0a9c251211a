package sinktest

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Maker makes messages. No two messages of one Maker have the same id, and their keys are as odd as keys can be.
type Maker struct {
	// Destination is as in Env.
	Destination func(number int) string

	made int
}

// Batch makes n messages; some are of objects that came up before, so that there is an order to keep for each object.
func (m *Maker) Batch(n int) []sink.Message {
	batch := make([]sink.Message, n)
	for i := range batch {
		batch[i] = m.Message(0)
	}
	return batch
}

// Message makes one message, with a value that is filled up to the size.
func (m *Maker) Message(size int) sink.Message {
	number := m.made
	m.made++
	id := oddID(number)
	text := id.String()
	made := sink.Message{
		ID:              text,
		Op:              id.Op.String(),
		ResourceVersion: id.ResourceVersion,
		Key:             []byte(id.Key.String()),
		Headers:         []sink.Header{{Name: "x-number", Value: strconv.Itoa(number)}},
		Value:           cloudEvent(text, size),
		Time:            time.Date(2026, 11, 21, 2, 33, 14, number, time.UTC),
	}
	if m.Destination != nil {
		made.Destination = m.Destination(number)
	}
	return made
}

// Tombstone makes one message without a value.
func (m *Maker) Tombstone() sink.Message {
	made := m.Message(0)
	made.Value = nil
	return made
}

// Pairs makes n records of two messages, the second one without a value, with a single message after each.
func (m *Maker) Pairs(n int) []sink.Message {
	var batch []sink.Message
	for range n {
		first := m.Message(0)
		second := first
		second.Value = nil
		batch = append(batch, first, second, m.Message(0))
	}
	return batch
}

func oddID(number int) change.ID {
	names := [...]string{
		"web", "coredns-7db6d8ff4d-x2x9z", "system:node:a.b", "a/b", "100%", `quo"te`, `back\slash`, "sp ace",
		"ünï-☃", "<&>", "nul\x00del\x7f", "line\nbreak", "%2F", strings.Repeat("n", 253), "",
	}
	namespaces := [...]string{"shop", "kube-system", ""}
	resources := [...]string{"pods", "deployments.apps", "certificates.cert-manager.io"}
	id := change.ID{
		Cluster:         "0a1b2c3d",
		Resource:        resources[number%len(resources)],
		Key:             change.Key{Namespace: namespaces[number%len(namespaces)], Name: names[number%len(names)]},
		UID:             "2f6f3a52-0000-4000-8000-" + strconv.Itoa(number%7),
		ResourceVersion: strconv.Itoa(1000 + number),
		Op:              change.Added + change.Op(number)%change.Sync,
	}
	if id.Op == change.Sync {
		id.Snapshot = "999.1700000000000"
	}
	return id
}

// cloudEvent has in its data what trips a reader of lines: escaped newlines, an id that is another one, the separators
// that JavaScript takes for line ends.
func cloudEvent(id string, size int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"specversion":"1.0","source":"/clusters/test","type":"dev.kubecdc.updated",`)
	b.WriteString(`"data":{"id":"of the data","text":"a\nb\r\n\\n \u2028` + "\u2028" + ` {}[]\"","pad":"`)
	for end := len(`"},"id":"`) + len(id) + len(`"}`); b.Len()+end < size; {
		b.WriteByte('x')
	}
	b.WriteString(`"},"id":"` + id + `"}`)
	return b.Bytes()
}
