package nats

import (
	"cmp"
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// inspect refuses a stream that holds another cluster's records where ours would go. Of a stream that is not shared,
// all of it is that place.
func (s *Sink) inspect(ctx context.Context, info *jetstream.StreamInfo) error {
	if info.State.Msgs == 0 {
		return nil
	}
	var queries []map[string]any
	for _, subject := range s.options.Subjects {
		queries = append(queries, map[string]any{"last_by_subj": subject}, map[string]any{"seq": 1, "next_by_subj": subject})
	}
	if !s.options.Shared {
		queries = append(queries, map[string]any{"last_by_subj": ">"}, map[string]any{"seq": 1, "next_by_subj": ">"})
	}
	for _, query := range queries {
		e, err := s.get(ctx, query)
		if err == nil && !e.gone {
			err = s.refuse(&e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// refuse is the verdict on a message that is in the place of ours: nil for one of ours and of nobody's. Two clusters
// may share a stream under two names.
func (s *Sink) refuse(e *entry) error {
	err := s.options.Judge(e.asStored(s.options.Stream))
	foreign, is := errors.AsType[*sink.ForeignError](err)
	switch {
	case !is:
		return err
	case foreign.Same:
		return sink.Permanent("open stream %s: %w", s.options.Stream, err)
	case s.options.Shared:
		return nil
	case s.options.KV != "":
		return sink.Permanent("open bucket %s: %w: give each cluster a bucket of its own with the key kv", s.options.KV, err)
	}
	return sink.Permanent("open stream %s: %w: give each cluster a stream of its own with the key stream, or say for both that it is shared, with the key shared",
		s.options.Stream, err)
}

// delivered gives the ids of our messages after the mark to found, and says how many messages there are gone.
func (s *Sink) delivered(ctx context.Context, want *mark, found func(id string)) (gone uint64, err error) {
	err = s.each(ctx, want.Seq, s.stream.place.Seq, func(e *entry) error {
		if e.gone {
			gone++
			return nil
		}
		ours, err := s.isOurs(ctx, e, want)
		if ours {
			found(e.id)
		}
		return err
	})
	return gone, err
}

// isOurs says whether the message after the mark is one that this sink has written. What nobody of us has written, and
// another cluster's in a stream that is not shared, is an error.
func (s *Sink) isOurs(ctx context.Context, e *entry, want *mark) (bool, error) {
	_, notOurs := change.ParseID(e.id)
	switch {
	case notOurs != nil && s.options.Shared:
		return false, nil
	case notOurs != nil:
		return false, sink.Permanent("open stream %s: message %d on subject %q is not from kubecdc: "+
			"another writer publishes into the stream: give the exporter a stream of its own, or say that it is shared",
			s.options.Stream, e.seq, e.subject)
	case s.options.Shared:
		return isMessageID(e.headers.Get(headerMessageID), messageID(want.Writer, e.subject, e.id)), nil
	}
	if s.options.Judge(e.asStored(s.options.Stream)) == nil {
		return coveredByAny(s.options.Subjects, e.subject), nil
	}
	// The whole message tells under which name another cluster has written it. One that is gone by now, such as a
	// replaced value of a bucket, is judged by its id.
	whole, err := s.get(ctx, map[string]any{"seq": e.seq})
	if err == nil && !whole.gone {
		e = &whole
	}
	return false, cmp.Or(err, s.refuse(e))
}
