package sinktest

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// patience bounds every case, so that a sink that hangs fails by name, on a machine that is busy with other tests.
const patience = 4 * time.Minute

// rig is the bench that one case works at.
type rig struct {
	*testing.T
	env     *Env
	ctx     context.Context
	prompt  time.Duration
	maker   Maker
	crashed map[sink.Sink]bool
}

func newRig(t *testing.T, env *Env) *rig {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return &rig{T: t, env: env, ctx: ctx, prompt: cmp.Or(env.Prompt, time.Minute), maker: Maker{Destination: env.Destination}, crashed: map[sink.Sink]bool{}}
}

// newSink is a sink that is closed at the end of the case, whatever becomes of it.
func (r *rig) newSink() sink.Sink {
	s := r.env.Sink(r.T)
	r.Cleanup(func() {
		if r.crashed[s] {
			return
		}
		// The test's own context has ended by now.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), r.prompt)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			r.Errorf("Close: %v", err)
		}
	})
	return s
}

func (r *rig) crash(s sink.Sink) {
	if r.env.Crash != nil {
		r.env.Crash(s)
		r.crashed[s] = true
	}
}

func (r *rig) close(s sink.Sink) {
	r.Helper()
	if err := s.Close(r.ctx); err != nil {
		r.Fatalf("Close: %v", err)
	}
}

// opened is a new sink, open at the mark, and the ids that were found after it.
func (r *rig) opened(mark sink.Mark) (sink.Sink, []string) {
	r.Helper()
	s := r.newSink()
	return s, r.open(s, mark)
}

func (r *rig) open(s sink.Sink, mark sink.Mark) []string {
	r.Helper()
	ids, err := Open(r.ctx, s, mark)
	if err != nil {
		r.Fatalf("Open at %q: %v", mark, err)
	}
	if mark == "" && len(ids) > 0 {
		r.Fatalf("Open at the empty mark returned %q", ids)
	}
	return ids
}

// write hands the sink copies and spoils them once it has returned: from there on they are the pipeline's again.
func (r *rig) write(s sink.Sink, batch []sink.Message) sink.Mark {
	r.Helper()
	mark, err := writeCopy(r.ctx, s, batch)
	if err != nil {
		r.Fatalf("Write of %d messages: %v", len(batch), err)
	}
	if mark == "" {
		r.Fatalf("Write of %d messages returned the empty mark, which stands for a sink that never wrote", len(batch))
	}
	return mark
}

func writeCopy(ctx context.Context, s sink.Sink, batch []sink.Message) (sink.Mark, error) {
	lent := make([]sink.Message, len(batch))
	for i := range batch {
		lent[i] = batch[i]
		lent[i].Key = bytes.Clone(batch[i].Key)
		lent[i].Value = bytes.Clone(batch[i].Value)
		lent[i].Headers = slices.Clone(batch[i].Headers)
	}
	mark, err := s.Write(ctx, lent)
	for i := range lent {
		for _, bs := range [][]byte{lent[i].Key, lent[i].Value} {
			for j := range bs {
				bs[j] = '#'
			}
		}
		clear(lent[i].Headers)
		lent[i] = sink.Message{ID: "spoiled"}
	}
	return mark, err
}

// check compares what a reader finds with what was acknowledged, and returns the stored messages that are not ours.
func (r *rig) check(want []sink.Message) []Stored {
	r.Helper()
	var ours, foreign []Stored
	for _, stored := range r.env.Messages(r.T) {
		if strings.HasPrefix(stored.ID, "0a1b2c3d/") {
			ours = append(ours, stored)
		} else {
			foreign = append(foreign, stored)
		}
	}
	found := make([]string, len(ours))
	for i := range ours {
		found[i] = ours[i].ID
	}
	r.same(found, want)
	r.sameContent(ours, want)
	return foreign
}

// sameContent compares the messages one by one, those of one id in their order.
func (r *rig) sameContent(ours []Stored, want []sink.Message) {
	r.Helper()
	wanted := make(map[string][]*sink.Message, len(want))
	for i := range want {
		if want[i].Value == nil && r.env.SkipsTombstones {
			continue
		}
		wanted[want[i].ID] = append(wanted[want[i].ID], &want[i])
	}
	for i := range ours {
		stored := &ours[i]
		message := wanted[stored.ID][0] // same found that the id is wanted, and not too often
		wanted[stored.ID] = wanted[stored.ID][1:]
		if !bytes.Equal(stored.Value, message.Value) || (stored.Value == nil) != (message.Value == nil) {
			r.Fatalf("value of %s: stored %.200q, written %.200q", stored.ID, stored.Value, message.Value)
		}
		if stored.Destination != "" && stored.Destination != message.Destination {
			r.Fatalf("%s: stored at %q, written to %q", stored.ID, stored.Destination, message.Destination)
		}
		if stored.Headers != nil {
			r.sameHeaders(stored, message)
		}
	}
	for id, left := range wanted {
		if len(left) > 0 {
			r.Fatalf("%d messages of %s are missing: a record is torn", len(left), id)
		}
	}
}

func (r *rig) sameHeaders(stored *Stored, message *sink.Message) {
	r.Helper()
	want := append([]sink.Header{
		{Name: sink.HeaderID, Value: message.ID},
		{Name: sink.HeaderOp, Value: message.Op},
		{Name: sink.HeaderResourceVersion, Value: message.ResourceVersion},
	}, message.Headers...)
	for _, h := range want {
		if !slices.Contains(stored.Headers, h) {
			r.Fatalf("%s: header %q is missing in %q", stored.ID, h, stored.Headers)
		}
	}
}
