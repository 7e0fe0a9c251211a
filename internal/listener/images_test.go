package listener

import (
	"context"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/fifo"
)

// keptAt10 is a store that keeps an object of version 10, as sink lake was told of it.
type keptAt10 struct{}

// Images is that of Images' store.
func (keptAt10) Images(stream string, _ change.Key) (change.Images, error) {
	if stream != "pods" {
		return nil, nil
	}
	return change.Images{{UID: "u", Version: "10", Object: []byte("{}"), Sinks: []string{"lake"}}}, nil
}

// TestI5WhatALogSaysIsUnknownWhereItIsNewer than what is kept: that is older than what the sink was told. What is as
// new is kept, and what other sinks were told is theirs.
func TestI5WhatALogSaysIsUnknownWhereItIsNewer(t *testing.T) {
	for said, isKept := range map[string]bool{"9": true, "10": true, "11": false} {
		images := &Images{store: keptAt10{}}
		item := checkpoint.Item{
			Kind: checkpoint.Told, Resource: "pods", Key: change.Key{Namespace: "shop", Name: "web"}, At: checkpoint.Point{History: 1, Version: said},
		}
		for sinkName, want := range map[string]bool{"lake": isKept, "bus": true} {
			unknown, err := images.unknown(sinkName, &item)
			if err != nil || (len(unknown) == 0) != want {
				t.Errorf("the log of %s says %s: unknown is %+v (%v)", sinkName, said, unknown, err)
			}
		}
	}
}

// TestI6RoomIsForTheFormThatTheSinkIsGiven: what a sink was told last may be smaller or larger than what others were,
// and the record with it. When it has left the queue, that is empty.
func TestI6RoomIsForTheFormThatTheSinkIsGiven(t *testing.T) {
	l, _, end := newBus(t, roomy())
	defer end()
	l.backlog = fifo.NewBacklog(fifo.Options{Queue: fifo.Limit{Bytes: 1 << 20, Records: 100}, Batch: BatchLimit()})
	l.serve(func() {})
	seat, _ := l.Seat()
	way := &Way{Resource: "pods", Scope: checkpoint.ScopeOf(&change.Stream{})}
	for at, own := range []change.Image{
		{UID: "u", Version: "9", Object: []byte("{}"), Sinks: []string{"bus"}},
		{UID: "u", Version: "9", Object: []byte(strings.Repeat(" ", 1000)), Sinks: []string{"bus"}},
		{UID: "other", Version: "9", Object: []byte("{}"), Sinks: []string{"bus"}},
	} {
		rec := &change.Record{
			Stream: &change.Stream{Resource: change.Resource{Version: "v1", Name: "pods"}}, Op: change.Updated, Key: change.Key{Name: "a"}, UID: "u",
			ResourceVersion: []string{"11", "12", "13"}[at], Object: []byte("{}"), Before: []byte(strings.Repeat(" ", 100)), Epoch: "cluster@1",
		}
		answer, err := seat.Offer(rec, way, change.Images{own}, "10")
		if err != nil || answer != Accepted {
			t.Fatalf("the answer is %d (%v)", answer, err)
		}
		if _, taken := l.backlog.Take(nil); len(taken) != 1 {
			t.Fatalf("%d records are taken", len(taken))
		}
		if used := l.backlog.Levels().Bytes; used != 0 {
			t.Errorf("an empty queue holds %d bytes behind a sink that was told %d", used, len(own.Object))
		}
		if waited, err := l.Below(context.Background(), 1<<10); waited || err != nil {
			t.Errorf("there is no room (%v)", err)
		}
		l.backlog.Dismiss()
	}
}
