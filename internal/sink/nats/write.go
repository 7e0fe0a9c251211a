package nats

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/nats/conn"
)

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
	if s.options.KV != "" { // how many keys it has now
		if info := s.glance(ctx); info != nil {
			s.stream.place.Held = hold(info, s.stream.place.Held)
		}
	}
	return s.stream.place.text(), err
}

// look compares the stream with what it held, now and then. A bucket is looked at before and after each write, since
// new keys would stand for the ones that somebody took away, and a shared stream also before the first write, since
// another cluster's exporter may have begun at the same time.
func (s *Sink) look(ctx context.Context, writes bool) error {
	due := time.Since(s.looked) >= s.tuning.look || writes && (s.options.KV != "" || s.options.Shared && s.stream.confirmed == 0)
	if !due || !s.conn.NC.IsConnected() {
		return nil
	}
	s.looked = time.Now()
	info := s.glance(ctx)
	if info == nil {
		return nil
	}
	if missing := s.stream.place.Held.missing(info, 0, 0, s.options.Shared); missing != "" {
		return conn.Ended("write to stream %s: it was purged: %s: open the sink again", s.options.Stream, missing)
	}
	s.stream.place.Held = hold(info, s.stream.place.Held)
	if err := s.options.fit("write to", &info.Config); err != nil || !s.options.Shared {
		return err
	}
	defer s.conn.EndWith(ctx)()
	return s.inspect(ctx, info)
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
