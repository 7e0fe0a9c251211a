package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
)

// serveReplays puts letters in line until ctx ends. They wait in their sink's queue as everything else.
func (p *participants) serveReplays(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case replay, open := <-p.Replays:
			if !open {
				return
			}
			if err := p.replay(ctx, &replay); err != nil {
				replay.answer("", err)
			}
		}
	}
}

func (p *Replay) answer(leftOut string, err error) {
	select {
	case p.Answer <- ReplayEnd{leftOut, err}:
	default: // it has one already
	}
}

// replay puts one letter in line. The listener answers.
func (p *participants) replay(ctx context.Context, replay *Replay) error {
	rec := *replay.Record
	if !rec.Op.OfObject() {
		return errors.New("it frames a snapshot that is over, and is of no use again: delete the letter, and ask for another with exporter snapshot")
	}
	configured := slices.ContainsFunc(p.sources(), func(s Source) bool { return s.Stream.String() == rec.Stream.String() })
	l := p.listenerOf(rec.Sink)
	if !configured || l == nil || l.DeadLetters == nil || !l.Takes(rec.Stream) {
		return fmt.Errorf("sink %s does not take %s any more: configure it again, or delete the letter", rec.Sink, rec.Stream)
	}
	if !l.Seat.Reaches(rec.Stream.String()) {
		return fmt.Errorf("sink %s is stopped, or comes back just now: try again when it is open", rec.Sink)
	}
	rec.Remarks = nil
	rec.Replay = &change.Replay{Letter: replay.Letter, Force: replay.Force, Done: replay.answer}
	return p.line.Push(ctx, &rec)
}
