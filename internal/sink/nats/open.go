package nats

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/internal/sink"
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
	s.conn, s.generation = c, c.Generation()
	info, err := s.ensure(ctx)
	if err != nil {
		return err
	}
	s.stream = knownStream{name: s.options.Stream, place: markOf(info), shared: s.options.Shared, maxSubject: maxSubject(c.Inbox)}
	s.stream.renew(&info.Config)
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
		s.stream.told = newTellings(0) // what is there of ours was told before a crash, and for the first time
		s.begin("")
		return nil
	}
	s.stream.told = newTellings(s.stream.place.Seq)
	if err := s.resume(ctx, info, want, at.After()); err != nil || !at.Again || s.options.Shared {
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
		s.begin(strconv.FormatUint(info.State.FirstSeq, 10))
		return err
	}
	place.Floor, place.Writer = want.Floor, cmp.Or(want.Writer, s.options.author(""))
	if err := want.endsBefore(info); err != nil {
		return lost(err)
	}
	unread, err := s.delivered(ctx, want, found)
	if err != nil {
		return err
	}
	if missing := want.Held.missing(info, want.Seq, unread, s.options.Shared); missing != "" {
		return lost(&sink.LostError{Log: "stream " + s.options.Stream, Want: want.String(), Have: "less than it held, since it was purged: " + missing})
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
