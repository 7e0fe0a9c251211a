package nats

import (
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/test/sinktest"
)

// told is a record of an object whose version does not change: it is told for another reason.
func told(name string, op change.Op) sink.Message {
	id := change.ID{
		Cluster: "prod", Resource: "pods", Key: change.Key{Namespace: "shop", Name: name},
		UID: "u", ResourceVersion: "5", Op: op,
	}
	return sink.Message{
		ID: id.String(), Op: op.String(), ResourceVersion: "5", Destination: "k8s.pods", Value: []byte("{}"),
	}
}

// remembering is a server with a stream that knows the ids of messages for long.
func remembering(t *testing.T) *testServer {
	s := startServer(t)
	s.create(jetstream.StreamConfig{Name: testStream, Subjects: []string{"k8s.>"}, Duplicates: time.Hour})
	return s
}

// TestI1WhatIsToldAgainIsStoredAgain: an object that is left out, selected again and left out again has the ids of
// before (I8). Its deletes and what it is are stored each time, across restarts and within a batch.
func TestI1WhatIsToldAgainIsStoredAgain(t *testing.T) {
	s := remembering(t)
	var want []string
	mark := sink.Mark("")
	is, isNot, other := told("web", change.Replaced), told("web", change.Deleted), told("db", change.Added)
	for _, run := range [][][]sink.Message{
		{{is, other}},
		{{isNot}},
		{{is}, {isNot}, {is, other}},
		{{isNot, is, isNot, is}},
		{{is, other}, {is, other}, {isNot}},
	} {
		opened := newSink(t, s.options())
		wantIDs(t, openAt(t, opened, mark), nil)
		for _, batch := range run {
			mark = write(t, opened, batch)
			want = append(want, idsOf(batch)...)
		}
	}
	wantIDs(t, s.ids(), want)
}

// TestI3AStreamWhoseMessagesHaveIDsGoesOn: builds that could share a stream gave each message an id for the server, and
// the mark a writer. What they have sent after the mark is found, and not sent again. A message of another writer after
// it stops the sink, and one before it does not.
func TestI3AStreamWhoseMessagesHaveIDsGoesOn(t *testing.T) {
	s := remembering(t)
	js, ctx := s.admin()
	publish := func(m *sink.Message) {
		t.Helper()
		out := natsgo.NewMsg(m.Destination)
		out.Header.Set(sink.HeaderID, m.ID)
		out.Header.Set(jetstream.MsgIDHeader, "x7Qm2c5vR0aT1bYw/"+m.ID)
		if _, err := js.PublishMsg(ctx, out); err != nil {
			t.Fatal(err)
		}
	}
	batch := newMaker().Batch(6)
	s.publish("k8s.x", "somebody else's")
	publish(&batch[0])
	place := markOf(must(js.Stream(ctx, testStream)).CachedInfo())
	mark := place.text()[:len(place.text())-1] + `,"writer":"q3Vb8dKj4LsP0mNz"}`
	publish(&batch[1])
	next := newSink(t, s.options())
	wantIDs(t, openAt(t, next, mark), idsOf(batch[1:2]))
	write(t, next, batch[2:])
	wantIDs(t, s.ids()[1:], idsOf(batch))
	s.publish("k8s.x", "somebody else's")
	_, err := sinktest.Open(within(t), newSink(t, s.options()), mark)
	wantError(t, err, `open stream K8S: message 8 on subject "k8s.x" is not from kubecdc: `+
		"another writer publishes into the stream: give the exporter a stream of its own with the key stream")
}
