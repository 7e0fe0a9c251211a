package line

import (
	"context"
	"time"
)

// Pace returns when at most so many bytes wait for the sink, and the line has room for what is not urgent, or with
// ctx's error. It waits as a rule until half of the bytes are taken, so that whoever asks is not woken for each record,
// and says whether it had to. A sink that is unknown, or not in line, is not waited for.
func (l *Line) Pace(ctx context.Context, sinkName string, most int) (waited bool, err error) {
	for _, s := range l.seats {
		if s.Name == sinkName {
			waited, err = s.Below(ctx, most)
		}
	}
	if err != nil {
		return waited, err
	}
	l.mu.Lock()
	full := !l.window.takesMore(l.isStuck)
	l.mu.Unlock()
	if !full {
		return waited, nil
	}
	return true, l.await(ctx, func() bool { return l.window.takesMore(l.isStuck) })
}

// isStuck says whether some sink has not taken its oldest record for long. The caller holds mu.
func (l *Line) isStuck() bool { return l.streams.holders(time.Now(), MergeFor) != 0 }
