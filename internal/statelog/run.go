package statelog

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// How long a log that failed is left alone: what only a person can mend, longer.
const (
	again     = time.Second
	permanent = time.Minute
)

// Run writes until ctx ends, or until Finish has been called and everything is written. A log that cannot be written
// is opened again, unless another exporter writes it now.
func (l *Log) Run(ctx context.Context) {
	defer close(l.ended)
	for {
		err := l.live(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		l.logged = nil
		l.Failed(err)
		wait := again
		var refused *sink.PermanentError
		if IsForGood(err) || errors.As(err, &refused) {
			wait = permanent
		}
		var retry <-chan time.Time
		if refused == nil || !refused.Fenced {
			retry = time.After(wait)
		}
		if !l.rest(ctx, retry, err) {
			return
		}
	}
}

// rest waits until the log that failed is to be tried again, false where it is not. Nothing can be proven meanwhile.
func (l *Log) rest(ctx context.Context, retry <-chan time.Time, cause error) bool {
	for {
		select {
		case <-retry:
			return true
		case answer := <-l.proofs:
			answer <- cause
		case <-l.finish:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// Finish makes Run return when everything is written, and waits for that until ctx ends. It is called when nothing
// changes in the state any more.
func (l *Log) Finish(ctx context.Context) {
	close(l.finish)
	select {
	case <-l.ended:
	case <-ctx.Done():
	}
}

// Wait returns when Run has.
func (l *Log) Wait() { <-l.ended }

// live opens the log and writes. It returns nil when it has finished.
func (l *Log) live(ctx context.Context) error {
	s, err := l.begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = l.Place.Sink.Close(context.WithoutCancel(ctx)) }() // everything is durable, or counts for nothing
	return s.run(ctx)
}

// begin opens the log.
func (l *Log) begin(ctx context.Context) (*session, error) {
	claimed := l.Claimed
	if l.Claimed = nil; claimed == nil {
		var err error
		if claimed, err = open(ctx, &l.Place, &claim{Bid{Of: l.Of, As: l.As}, l.self, l.claimed}); err != nil {
			return nil, err
		}
	}
	l.claimed = true
	seen := claimed.seen
	s := &session{Log: l, writer: newWriter(l.Of, newChain(), seen), claim: claimed.claim}
	s.grain = l.Grain
	if end, ok := seen.end(); ok && l.logged != nil && bytes.Equal(l.logged, end) {
		s.goOn(seen)
		s.whole = true
		l.Queue.logged()
	}
	return s, nil
}
