package nats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/internal/sink"
)

var _ sink.Sink = (*Sink)(nil)

// Sink writes into one stream. See sink.Sink for what its methods promise.
type Sink struct {
	*session
	modes     *publishModes
	manager   *manager
	inspector *inspector
	watch     *watch
	writer    *writer
}

// New checks the options and returns a sink that is not open.
func New(options Options) (*Sink, error) {
	if err := options.complete(); err != nil {
		return nil, fmt.Errorf("configure nats sink: %w", err)
	}
	s := &session{options: options, name: options.Stream, tuning: defaultTuning()}
	w, i := &publishModes{session: s}, &inspector{session: s}
	return &Sink{session: s, modes: w, inspector: i, manager: &manager{s, w}, watch: &watch{session: s, inspector: i}, writer: &writer{s, w}}, nil
}

// Open is as in sink.Sink.
func (s *Sink) Open(ctx context.Context, at sink.Opening) error {
	want, err := parseMark(at.Mark)
	if err != nil {
		return err
	}
	s.shut(ctx)
	wait := newBackOff()
	for {
		err := s.attempt(ctx, want, &at)
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
		pause(ctx, wait.NextBackOff(), nil)
		if ctx.Err() != nil {
			return s.final(ctx, "open", err)
		}
	}
}

// attempt opens once. The sink is open after a LostError, too.
func (s *Sink) attempt(ctx context.Context, want *mark, at *sink.Opening) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	s.conn, s.generation = c, c.Generation()
	if err := s.inspector.locate(ctx, want); err != nil {
		return err
	}
	info, err := s.manager.ensure(ctx)
	if err != nil {
		return err
	}
	s.stream = newStream(info)
	s.modes.choose(&info.Config)
	s.stream.shared, s.stream.maxSubject = s.options.Shared, maxSubject(c.Inbox)
	if s.options.KV != "" {
		s.stream.keys = bucketSubject + s.options.KV + "."
	}
	s.stream.place.Held, s.watch.looked = hold(info, nil), time.Now()
	if want == nil || s.options.Shared {
		if err := s.inspector.inspect(ctx, info); err != nil {
			return err
		}
	}
	if want == nil {
		s.stream.told = newTellings(0) // what is there of ours was told before a crash, and for the first time
		s.begin("")
		return nil
	}
	s.stream.told = newTellings(s.stream.place.Seq)
	if err := s.resume(ctx, info, want, at.After()); err != nil || !at.Again || s.options.Shared {
		return err
	}
	return s.inspector.onlyOurs(ctx, &s.left)
}

// resume finds what the stream holds after the mark. Where it lost what was before that, the sink begins anew.
func (s *Sink) resume(ctx context.Context, info *jetstream.StreamInfo, want *mark, found func(id string)) error {
	place := &s.stream.place
	lost := func(err error) error {
		// what took the place of what is lost may be another cluster's
		if foreign := s.inspector.inspect(ctx, info); foreign != nil {
			return foreign
		}
		s.begin(strconv.FormatUint(info.State.FirstSeq, 10))
		return err
	}
	place.Floor, place.Writer = want.Floor, cmp.Or(want.Writer, s.options.author(""))
	if err := want.lostIn(info); err != nil {
		return lost(err)
	}
	unread, err := s.inspector.delivered(ctx, want, found)
	if err != nil {
		return err
	}
	if missing := want.Held.missing(view{info, unread, s.options.Shared}); missing != "" {
		return lost(&sink.LostError{Log: "stream " + s.name, Want: want.String(), Have: "less than it held, since it was purged: " + missing})
	}
	place.Held = hold(info, want.Held)
	return nil
}

// begin notes that nothing of what is there is known, neither of what a bucket has. The server may remember ids of
// messages that it has lost: ours are others from now on.
func (s *Sink) begin(life string) {
	s.stream.place.Writer = s.options.author(life)
	if s.options.KV != "" {
		s.stream.place.Floor = s.stream.place.Seq
	}
}

// Write is as in sink.Sink. Any error but a rejection closes the sink.
func (s *Sink) Write(ctx context.Context, batch []sink.Message) (sink.Mark, error) {
	if s.conn == nil {
		return "", fmt.Errorf("write to stream %s: the sink is not open: open it", s.name)
	}
	err := s.watch.look(ctx, len(batch) > 0)
	if err != nil {
		s.shut(ctx)
		return "", err
	}
	good, rejected := s.writer.screen(ctx, batch)
	err = s.writer.deliver(ctx, batch[:good])
	s.left.place = s.stream.place
	if err == nil {
		err = rejected
	}
	var final *sink.RejectedError
	if err == nil || errors.As(err, &final) {
		s.watch.count(ctx)
		return s.stream.place.text(), err
	}
	s.shut(ctx)
	return "", err
}

// Close is as in sink.Sink. Nothing is under way between two calls of Write, so there is nothing to flush.
func (s *Sink) Close(ctx context.Context) error {
	s.shut(ctx)
	return nil
}
