package nats

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/nats/conn"
)

// patience is how often Write may ask to be opened again because somebody wrote after Open and before our first
// message. Once may be the last words of a predecessor that was killed; always is a second exporter.
const patience = 3

// settle finds out which messages after the acknowledged ones are stored.
func (p *publisher) settle(ctx context.Context) error {
	s := p.session
	info, err := p.lookup(ctx)
	if err != nil {
		return err
	}
	s.stream.renew(&info.Config)
	p.modes.choose(&info.Config)
	if s.stream.shared { // what was stored is known by its id
		s.generation = s.conn.Generation()
		return nil
	}
	rest := p.batch[p.acked:]
	entries, err := s.tail(ctx, info.State.LastSeq, len(rest)+1)
	if err != nil {
		return err
	}
	if n := len(entries); n > 0 && entries[n-1].gone {
		if err := p.quiet(ctx, info.State.LastSeq); err != nil {
			return err
		}
	}
	n, err := p.prefix(entries, rest)
	if err != nil {
		return err
	}
	p.acked += n
	if n > 0 {
		s.stored(n)
	}
	s.stream.place.Seq = info.State.LastSeq
	return nil
}

// lookup asks how the stream is, which must be the one that was opened.
func (p *publisher) lookup(ctx context.Context) (*jetstream.StreamInfo, error) {
	s := p.session
	info, err := s.lookup(ctx)
	if codeOf(err) == codeNotFound {
		return nil, conn.Ended("write to stream %s: it is gone: open the sink again", s.stream.name)
	}
	if err != nil {
		return nil, err
	}
	if err := s.stream.place.endsBefore(info); err != nil {
		return nil, conn.Ended("write to stream %s: %s: open the sink again", s.stream.name, err)
	}
	return info, nil
}

// quiet fails unless the stream's end stays where it is. Where the last message is gone, a later one may have replaced
// it, which proves everything; and if none did, what is not proven is sent again behind the end, where a copy that is
// still on its way would be taken for somebody else's.
func (p *publisher) quiet(ctx context.Context, last uint64) error {
	for _, after := range [...]time.Duration{0, p.session.tuning.quiet} {
		pause(ctx, after, nil)
		info, err := p.lookup(ctx)
		if err != nil {
			return err
		}
		if info.State.LastSeq != last {
			return errUnsettled
		}
	}
	return nil
}

// prefix is how many messages of rest the entries prove to be stored. One that is gone, since a limit or a consumer
// took it, is proven by a later one at its own place; where nothing proves it, it is sent again with the same id (I4).
// What was stored behind as many as were sent is somebody else's, though it is gone, and Open finds out whose: a bucket
// keeps the newest of a key alone.
func (p *publisher) prefix(entries []entry, rest []sink.Message) (int, error) {
	proven := 0
	for i, e := range entries {
		switch {
		case e.gone && i < len(rest):
		case e.gone:
			return 0, conn.Ended("write to stream %s: more was stored than was sent: open the sink again", p.session.stream.name)
		case i < len(rest) && e.id == rest[i].ID && e.subject == rest[i].Destination:
			proven = i + 1
		default:
			return 0, p.foreign(e)
		}
	}
	return proven, nil
}

// foreign is the verdict on a message that is not ours where ours should be (I10).
func (p *publisher) foreign(e entry) error {
	s := p.session
	s.moved++
	if !s.stream.confirmed && s.moved < patience {
		return conn.Ended("write to stream %s: message %d on subject %q came after it was opened: open the sink again",
			s.stream.name, e.seq, e.subject)
	}
	return &sink.PermanentError{Fenced: true, Err: fmt.Errorf("write to stream %s: message %d on subject %q is not ours: "+
		"another exporter writes to the stream: stop it, or give each its own stream",
		s.stream.name, e.seq, e.subject)}
}
