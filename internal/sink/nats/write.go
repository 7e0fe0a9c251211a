package nats

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/nats/conn"
)

// Open is as in sink.Sink.
func (s *Sink) Open(ctx context.Context, at sink.Opening) error {
	want, err := parseMark(at.Mark)
	if err != nil {
		return err
	}
	s.shut(ctx)
	wait := newBackOff()
	for {
		err := s.openOnce(ctx, want, &at)
		var lost *sink.LostError
		if err == nil || errors.As(err, &lost) {
			s.opened, s.left = true, left{place: s.stream.place}
			return err
		}
		s.shut(ctx)
		if end := s.final(ctx, "open", err); end != nil {
			return end
		}
		s.options.Retry(reason(err), err)
		if !sink.Pause(ctx, wait.NextBackOff(), nil) {
			return s.final(ctx, "open", err)
		}
	}
}

// openOnce makes one attempt. The sink is open after a LostError, too.
func (s *Sink) openOnce(ctx context.Context, want *mark, at *sink.Opening) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	s.conn = c
	info, err := s.ensure(ctx)
	if err != nil {
		return err
	}
	s.stream = knownStream{place: markOf(info), maxSubject: maxSubject(c.Inbox)}
	s.stream.renew(&info.Config)
	if s.options.KV != "" {
		s.stream.keys = bucketSubject + s.options.KV + "."
	}
	s.stream.place.Held, s.looked = hold(info, nil), time.Now()
	if want == nil {
		s.begin()
		return s.inspect(ctx, info)
	}
	if err := s.resume(ctx, info, want, at.After()); err != nil || !at.Again {
		return err
	}
	return s.onlyOurs(ctx, &s.left)
}

// resume finds what the stream holds after the mark. Where it lost what was before that, the sink begins anew.
func (s *Sink) resume(ctx context.Context, info *jetstream.StreamInfo, want *mark, found func(id string)) error {
	place := &s.stream.place
	lost := func(err error) error {
		// what took the place of what is lost may be another cluster's
		if foreign := s.inspect(ctx, info); foreign != nil {
			return foreign
		}
		s.begin()
		return err
	}
	place.Floor = want.Floor
	if err := want.endsBefore(info); err != nil {
		return lost(err)
	}
	unread, err := s.delivered(ctx, want.Seq, found)
	if err != nil {
		return err
	}
	if missing := want.Held.missing(info, want.Seq, unread); missing != "" {
		return lost(&sink.LostError{Log: "stream " + s.options.Stream, Want: want.String(), Have: "less than it held, since it was purged: " + missing})
	}
	place.Held = hold(info, want.Held)
	return nil
}

// begin notes that nothing is known of what a bucket has.
func (s *Sink) begin() {
	if s.options.KV != "" {
		s.stream.place.Floor = s.stream.place.Seq
	}
}

// Write is as in sink.Sink. Any error but a rejection closes the sink.
func (s *Sink) Write(ctx context.Context, batch []sink.Message) (sink.Mark, error) {
	if s.conn == nil {
		return "", fmt.Errorf("write to stream %s: the sink is not open: open it", s.options.Stream)
	}
	err := s.look(ctx, len(batch) > 0)
	if err != nil {
		s.shut(ctx)
		return "", err
	}
	good, rejected := s.screen(ctx, batch)
	err = s.deliver(ctx, batch[:good])
	s.left.place = s.stream.place
	if err == nil {
		err = rejected
	}
	var final *sink.RejectedError
	if err != nil && !errors.As(err, &final) {
		s.shut(ctx)
		return "", err
	}
	if s.options.KV != "" { // how many keys it has now; what somebody took meanwhile, the next look tells
		if info, held := s.glance(ctx), s.stream.place.Held; info != nil && held.missing(info, 0, 0) == "" {
			s.stream.place.Held = hold(info, held)
		}
	}
	return s.stream.place.text(), err
}

// look compares the stream with what it held, now and then. A bucket is looked at before and after each write, since
// new keys would stand for the ones that somebody took away.
func (s *Sink) look(ctx context.Context, writes bool) error {
	due := time.Since(s.looked) >= s.tuning.look || writes && s.options.KV != ""
	if !due || !s.conn.NC.IsConnected() {
		return nil
	}
	s.looked = time.Now()
	info := s.glance(ctx)
	if info == nil {
		return nil
	}
	if missing := s.stream.place.Held.missing(info, 0, 0); missing != "" {
		return conn.Ended("write to stream %s: it was purged: %s: open the sink again", s.options.Stream, missing)
	}
	s.stream.place.Held = hold(info, s.stream.place.Held)
	return s.options.fit("write to", &info.Config)
}

// screen returns how many messages of the batch's front can be sent, and what is wrong with the one after them. The
// server would refuse that one, too, but the limit that belongs to the connection it enforces by cutting it. Before a
// message is refused, the stream's limits are read anew: somebody may have raised them.
func (s *Sink) screen(ctx context.Context, batch []sink.Message) (int, error) {
	payload := s.conn.NC.MaxPayload()
	asked := false
	for i := range batch {
		reason, err := s.stream.objection(&batch[i], payload)
		if err != nil && !asked {
			asked = true
			if info := s.glance(ctx); info != nil {
				s.stream.renew(&info.Config)
			}
			reason, err = s.stream.objection(&batch[i], payload)
		}
		if err != nil {
			return i, &sink.RejectedError{Index: i, Reason: reason, Err: err}
		}
	}
	return len(batch), nil
}

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
