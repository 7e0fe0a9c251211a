package nats

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/nats/conn"
)

// publish makes the batch durable (I1).
func (s *Sink) publish(ctx context.Context, batch []sink.Message) error {
	if err := ctx.Err(); err != nil {
		return s.final(ctx, "write to", err)
	}
	p := &publisher{Sink: s, batch: batch}
	defer func() {
		s.left.doubt = nil
		for _, m := range batch[p.acked:] { // the rest of it is not ours to keep
			s.left.doubt = append(s.left.doubt, sink.Message{ID: m.ID, Destination: m.Destination})
		}
	}()
	wait := newBackOff()
	for {
		before := p.acked
		err := p.attempt(ctx)
		if err == nil {
			return nil
		}
		if end := s.final(ctx, "write to", err); end != nil {
			return end
		}
		if _, is := errors.AsType[*conn.EndedError](err); is {
			return err
		}
		if p.acked > before {
			wait.Reset()
		}
		s.options.Retry(reason(err), err)
		if !sink.Pause(ctx, wait.NextBackOff(), s.conn.Changed) {
			return s.final(ctx, "write to", err)
		}
	}
}

// attempt finds out what an earlier one left in doubt, and sends the rest.
func (p *publisher) attempt(ctx context.Context) error {
	c, err := p.alive(ctx)
	if err != nil {
		return err
	}
	defer c.EndWith(ctx)()
	if err := c.Ready(ctx); err != nil {
		return err
	}
	if p.unsure {
		n, err := p.settle(ctx, p.batch[p.acked:])
		if errors.Is(err, conn.ErrSilent) { // the library would notice only after some pings
			return errors.Join(err, c.NC.ForceReconnect())
		}
		if err != nil {
			return err
		}
		p.acked += n
	}
	p.unsure = true
	err = p.send(ctx)
	p.unsure = err != nil
	return p.classify(err)
}

// classify turns a refusal into the contract's error, if another attempt would be refused, too. Only the first message
// of an attempt decides: the ones after it are refused because of it, and none of them is under way yet, to be stored
// when the caller has gone on without the message.
func (p *publisher) classify(err error) error {
	refused, is := errors.AsType[*refusal](err)
	switch {
	case !is || refused.index != p.start:
	case tooLarge(err):
		return &sink.RejectedError{Index: refused.index, Reason: "too_large", Err: conn.Terse{Err: refused.err}}
	case codeOf(err) == codeSealed:
		return sink.Permanent("write to stream %s: it was sealed: name another stream", p.options.Stream)
	}
	return err
}

// hearing is for how many quiet times the last words of a killed exporter are waited for.
const hearing = 30

// settle finds out how many messages of rest, the ones that follow on those that are known to be stored, are stored.
func (s *Sink) settle(ctx context.Context, rest []sink.Message) (int, error) {
	info, err := s.lookupSame(ctx)
	if err != nil {
		return 0, err
	}
	s.stream.renew(&info.Config)
	place := s.stream.place.Seq
	entries, err := s.between(ctx, place, min(info.State.LastSeq, place+uint64(len(rest)+1)))
	if err != nil {
		return 0, err
	}
	if n := len(entries); n > 0 && entries[n-1].gone {
		// A later one may have replaced it, which proves everything. If none did, what is not proven is sent again
		// after the end, where a copy that is still on its way would be taken for somebody else's: so the end has to
		// stay.
		sink.Pause(ctx, s.tuning.quiet, nil)
		later, err := s.lookupSame(ctx)
		if err == nil && later.State.LastSeq != info.State.LastSeq {
			err = errUnsettled
		}
		if err != nil {
			return 0, err
		}
	}
	n, err := s.stream.prefix(entries, rest)
	if err != nil {
		return 0, s.verdict(ctx, info.State.LastSeq, err)
	}
	// an earlier exporter may have written them: only an acknowledgement confirms that it was us
	s.stream.place.Seq = info.State.LastSeq
	return n, nil
}

// lookupSame asks how the stream is, which must be the one that was opened.
func (s *Sink) lookupSame(ctx context.Context) (*jetstream.StreamInfo, error) {
	info, err := s.lookup(ctx)
	if codeOf(err) == jetstream.JSErrCodeStreamNotFound {
		return nil, conn.Ended("write to stream %s: it is gone: open the sink again", s.options.Stream)
	}
	if err != nil {
		return nil, err
	}
	if err := s.stream.place.endsBefore(info); err != nil {
		return nil, conn.Ended("write to stream %s: %s: open the sink again", s.options.Stream, err)
	}
	return info, s.options.fit("write to", &info.Config)
}

// prefix is how many messages of rest the entries prove to be stored. One that is gone, since a limit or a person took
// it, is proven by a later one at its own place; where nothing proves it, it is sent again with the same id (I4). Where
// a newer message of a subject replaces the older one, it must have been replaced: else the one that is gone was
// somebody else's, which a later one of ours replaced. What was stored after as many as were sent is somebody else's,
// too, and Open finds out whose. The error is a *strangerError.
func (s *knownStream) prefix(entries []entry, rest []sink.Message) (int, error) {
	proven := 0
	for i, e := range entries {
		switch {
		case e.gone && i < len(rest):
		case !e.gone && i < len(rest) && e.id == rest[i].ID && e.subject == rest[i].Destination:
			proven = i + 1
		default:
			return 0, &strangerError{e}
		}
	}
	for i, e := range entries[:proven] {
		replaces := func(later entry) bool { return later.subject == rest[i].Destination }
		if e.gone && s.replaces && !slices.ContainsFunc(entries[i+1:], replaces) {
			return 0, &strangerError{e}
		}
	}
	return proven, nil
}

// strangerError is that a message is not ours where ours should be.
type strangerError struct{ entry }

func (e *strangerError) Error() string {
	return fmt.Sprintf("message %d on subject %q is not ours", e.seq, e.subject)
}

// verdict says whose the stranger is (I10). A killed exporter's last words come before the first message of ours that
// is acknowledged, or directly behind it: each fits in one place only, and of several under way that place goes on
// behind ours. They are no more than it may have had under way.
func (s *Sink) verdict(ctx context.Context, last uint64, err error) error {
	stranger, is := errors.AsType[*strangerError](err)
	switch {
	case !is:
		return err
	case s.stream.confirmed > 0 && stranger.gone:
		return conn.Ended("write to stream %s: it has what was not sent: open the sink again", s.options.Stream)
	case s.stream.confirmed > 1:
	case s.hearOut(ctx, last)-s.stream.place.Seq <= mostUnderWay:
		return s.late("write to", stranger)
	}
	return &sink.PermanentError{Fenced: true, Err: fmt.Errorf("write to stream %s: %w: "+
		"another exporter writes to the stream: stop it, or give each %s", s.options.Stream, err, s.options.remedy())}
}

func (s *Sink) late(verb string, stranger *strangerError) error {
	return &sink.LateError{Err: fmt.Errorf("%s stream %s: message %d came after it was opened: "+
		"an earlier exporter had sent it when it was killed, or another one writes to the stream", verb, s.options.Stream, stranger.seq)}
}

// onlyOurs fails where anything else came into the stream, since it was left, than was in doubt.
func (s *Sink) onlyOurs(ctx context.Context, since *left) error {
	now := s.stream.place
	if since.place.Stream != now.Stream || !since.place.Created.Equal(now.Created) || since.place.Seq > now.Seq {
		return nil // another life of the stream, of which nothing was known
	}
	entries, err := s.between(ctx, since.place.Seq, min(now.Seq, since.place.Seq+uint64(len(since.doubt))+1))
	if err != nil {
		return err
	}
	_, err = s.stream.prefix(entries, since.doubt)
	if stranger, is := errors.AsType[*strangerError](err); is {
		return s.late("open", stranger)
	}
	return nil
}

// hearOut returns where the stream ends when nothing more comes into it: a slow network brings last words bit by bit,
// and each that came after the next Open would be late again. It waits only so long.
func (s *Sink) hearOut(ctx context.Context, last uint64) uint64 {
	for range hearing {
		sink.Pause(ctx, s.tuning.quiet, nil)
		info, err := s.lookupSame(ctx)
		if err != nil || info.State.LastSeq == last {
			break
		}
		last = info.State.LastSeq
	}
	return last
}
