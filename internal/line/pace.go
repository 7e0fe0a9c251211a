package line

import (
	"context"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Pace returns when at most so many bytes wait for the sink, and the line has room for what is not urgent, or with
// ctx's error. It waits as a rule until half of the bytes are taken, so that whoever asks is not woken for each record,
// and says whether it had to. With "" it does so for each sink that takes the stream and is well: one that is stuck, or
// whose records are on disk, holds up no snapshot that is not its own. A sink that is not in line is not waited for.
func (l *Line) Pace(ctx context.Context, stream *change.Stream, sinkName string, most int) (waited bool, err error) {
	for _, s := range l.seats {
		one := false
		switch {
		case s.Name == sinkName:
			one, err = s.Below(ctx, most)
		case sinkName == "" && (s.Wants == nil || s.Wants(stream)) && l.isWell(s):
			one, err = belowSoon(ctx, s, most)
		}
		if waited = waited || one; err != nil {
			return waited, err
		}
	}
	l.mu.Lock()
	full := !l.window.takesMore(l.isStuck)
	l.mu.Unlock()
	if !full {
		return waited, nil
	}
	return true, l.await(ctx, func() bool { return l.window.takesMore(l.isStuck) })
}

// isWell says whether the sink takes what it is given, and from memory.
func (l *Line) isWell(s *seat) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	disk := s.Disk.State()
	return !disk.Takes && !disk.Behind && l.streams.holders(time.Now(), MergeFor)&s.bit() == 0
}

// belowSoon is Below, but for a sink that turns out to be stuck.
func belowSoon(ctx context.Context, s *seat, most int) (waited bool, err error) {
	soon, stop := context.WithTimeout(ctx, MergeFor)
	defer stop()
	waited, err = s.Below(soon, most)
	if err != nil && ctx.Err() == nil {
		return waited, nil
	}
	return waited, err
}
