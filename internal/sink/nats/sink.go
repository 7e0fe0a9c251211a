package nats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/nats/conn"
)

var _ sink.Sink = (*Sink)(nil)

// Sink writes into one stream. See sink.Sink for what its methods promise.
type Sink struct {
	options Options
	tuning  tuning
	conn    *conn.Conn // nil while the sink is not open
	name    string     // of the stream
	stream  stream
	looked  time.Time // when it was last compared with what it held before
	opened  bool      // an Open succeeded: what is missing now was there once, and is worth waiting for
	moved   int       // how often in a row somebody wrote between our Open and our first message
	refused error     // why the stream could not be changed to take batches
	mode    atomic.Pointer[string]
	goesOn  sync.Once // says that the stream is one of the former default name
	// of the connection that last saw a shared stream whole: nothing else tells of one that is shorter
	generation uint64
}

// New checks the options and returns a sink that is not open.
func New(options Options) (*Sink, error) {
	if err := options.complete(); err != nil {
		return nil, fmt.Errorf("configure nats sink: %w", err)
	}
	return &Sink{options: options, name: options.Stream, tuning: defaultTuning()}, nil
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
		err := s.attempt(ctx, want, at.Behind)
		var lost *sink.LostError
		if err == nil || errors.As(err, &lost) {
			s.opened = true
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
func (s *Sink) attempt(ctx context.Context, want *mark, behind sink.Tail) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	s.conn, s.generation = c, c.Generation()
	if err := s.locate(ctx, want); err != nil {
		return err
	}
	info, err := s.ensure(ctx)
	if err != nil {
		return err
	}
	s.stream = newStream(info)
	s.choose(&info.Config)
	s.stream.shared, s.stream.maxSubject = s.options.Shared, maxSubject(c.Inbox)
	if s.options.KV != "" {
		s.stream.keys = bucketSubject + s.options.KV + "."
	}
	s.stream.place.Held, s.looked = hold(info, nil), time.Now()
	if want == nil || s.options.Shared {
		if err := s.inspect(ctx, info); err != nil {
			return err
		}
	}
	if want == nil {
		s.begin("")
		return nil
	}
	return s.resume(ctx, info, want, behind())
}

// resume finds what the stream holds behind the mark. Where it lost what was before that, the sink begins anew.
func (s *Sink) resume(ctx context.Context, info *jetstream.StreamInfo, want *mark, found func(id string)) error {
	place := &s.stream.place
	lost := func(err error) error {
		// what took the place of what is lost may be another cluster's
		if foreign := s.inspect(ctx, info); foreign != nil {
			return foreign
		}
		s.begin(strconv.FormatUint(info.State.FirstSeq, 10))
		return err
	}
	place.Floor, place.Writer = want.Floor, cmp.Or(want.Writer, s.writer(""))
	if err := want.lostIn(info); err != nil {
		return lost(err)
	}
	unread, err := s.delivered(ctx, want, found)
	if err != nil {
		return err
	}
	if missing := want.Held.missing(s.view(info, unread)); missing != "" {
		return lost(&sink.LostError{Log: "stream " + s.name, Want: want.String(), Have: "less than it held, since it was purged: " + missing})
	}
	place.Held = hold(info, want.Held)
	return nil
}

// begin notes that nothing of what is there is known. The server may remember ids of messages that it has lost: ours
// are others from now on.
func (s *Sink) begin(life string) {
	s.stream.place.Writer = s.writer(life)
	s.raiseFloor()
}

// raiseFloor notes that nothing of what a bucket has is known.
func (s *Sink) raiseFloor() {
	if s.options.KV != "" {
		s.stream.place.Floor = s.stream.place.Seq
	}
}

// Write is as in sink.Sink. Any error but a rejection closes the sink.
func (s *Sink) Write(ctx context.Context, batch []sink.Message) (sink.Mark, error) {
	if s.conn == nil {
		return "", fmt.Errorf("write to stream %s: the sink is not open: open it", s.name)
	}
	err := s.look(ctx, len(batch) > 0)
	if err != nil {
		s.shut(ctx)
		return "", err
	}
	good, rejected := s.screen(ctx, batch)
	err = s.deliver(ctx, batch[:good])
	if err == nil {
		err = rejected
	}
	var final *sink.RejectedError
	if err == nil || errors.As(err, &final) {
		s.count(ctx)
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

func (s *Sink) shut(ctx context.Context) {
	if s.conn != nil {
		s.conn.Close(ctx)
		s.conn = nil
	}
}

// final returns the error that ends a call of Open or Write, or nil if another attempt may go better.
func (s *Sink) final(ctx context.Context, verb string, err error) error {
	var permanent *sink.PermanentError
	var rejected *sink.RejectedError
	switch ended := ctx.Err(); {
	case errors.As(err, &permanent), errors.As(err, &rejected):
		return err
	case ended == nil:
		return nil
	case errors.Is(err, ended):
		return fmt.Errorf("%s stream %s: %w", verb, s.name, ended)
	default:
		return fmt.Errorf("%s stream %s: %w: the last attempt failed: %w", verb, s.name, ended, err)
	}
}
