package nats

import (
	"context"
	"fmt"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// swept is how many delete markers one batch of a sweep has at most.
const swept = 500

// deliver publishes the batch. Before the end of a full snapshot it takes the keys of the same stream of changes out of
// the bucket that the snapshot did not write: they are from an earlier life of the exporter, or from before the bucket
// lost what it had, and nobody remembers to delete them. Where that begins is the mark's floor.
func (s *Sink) deliver(ctx context.Context, batch []sink.Message) error {
	done := 0
	for i := range batch {
		if s.stream.place.Floor == 0 || !endsFull(&batch[i]) {
			continue
		}
		if err := s.publishPart(ctx, batch, done, i); err != nil {
			return err
		}
		if err := s.sweep(ctx, &batch[i]); err != nil {
			return fmt.Errorf("sweep bucket %s: %w", s.options.KV, err)
		}
		done = i
	}
	return s.publishPart(ctx, batch, done, len(batch))
}

// publishPart publishes a part of the batch, and names a message that is rejected by its place in the whole.
func (s *Sink) publishPart(ctx context.Context, batch []sink.Message, from, to int) error {
	err := s.publish(ctx, batch[from:to])
	if rejected, ok := err.(*sink.RejectedError); ok {
		rejected.Index += from
	}
	return err
}

// endsFull says whether all objects that the stream of changes has were written since the snapshot's begin, or, where
// an initial snapshot was interrupted, since the sink is new.
func endsFull(m *sink.Message) bool {
	if m.Op != change.SnapshotEnd.String() || m.Limited {
		return false
	}
	reason := change.Reason(m.Reason)
	return reason == change.Initial || reason.Full()
}

// sweep puts delete markers on the keys that the snapshot did not write.
func (s *Sink) sweep(ctx context.Context, end *sink.Message) error {
	var markers []sink.Message
	filter := keysOf(end.Destination)
	for seq := uint64(1); ; {
		e, err := s.following(ctx, seq, filter)
		if err != nil {
			return err
		}
		beyond := e.gone || e.seq > s.stream.place.Floor
		if !beyond && e.subject != end.Destination && e.headers.Get(headerOperation) == "" {
			markers = append(markers, marker(&e, end))
		}
		if beyond || len(markers) == swept {
			if err := s.publish(ctx, markers); err != nil || beyond {
				return err
			}
			markers = markers[:0]
		}
		seq = e.seq + 1
	}
}

// keysOf is the subject of all keys of a stream of changes whose frames have the given subject: their tokens for what
// they do not have are "-", which no object's name is.
func keysOf(frame string) string {
	for strings.HasSuffix(frame, ".-") {
		frame = strings.TrimSuffix(frame, ".-")
	}
	return frame + ".>"
}

// marker deletes the key of an entry, whose object it names as the entry did.
func marker(e *entry, end *sink.Message) sink.Message {
	id, err := change.ParseID(e.id)
	if err != nil { // somebody else's
		id = change.ID{Resource: "unknown", Key: change.Key{Name: e.subject}}
		if frame, err := change.ParseID(end.ID); err == nil {
			id.Cluster, id.Resource = frame.Cluster, frame.Resource
		}
	}
	id.Op, id.Snapshot = change.Deleted, ""
	return sink.Message{ID: id.String(), Op: id.Op.String(), ResourceVersion: id.ResourceVersion, Destination: e.subject}
}

// following is the first entry at the sequence or after it whose subject the filter covers, and that is the last of its
// subject. It is gone if there is none.
func (s *Sink) following(ctx context.Context, seq uint64, filter string) (entry, error) {
	for {
		e, err := s.get(ctx, map[string]any{"seq": seq, "next_by_subj": filter})
		if err != nil || e.gone {
			return e, err
		}
		last, err := s.get(ctx, map[string]any{"last_by_subj": e.subject})
		if err != nil || last.seq == e.seq || e.seq > s.stream.place.Floor {
			return e, err
		}
		seq = e.seq + 1 // a bucket with history has a newer value
	}
}
