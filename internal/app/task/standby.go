package task

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/disk"
	"github.com/kubecdc/kubecdc/internal/statelog"
	"github.com/kubecdc/kubecdc/internal/telemetry"
)

// standby follows the log of the state into this member's directory, so that a takeover reads only what came since.
type standby struct {
	log      *StateLog
	copy     *checkpoint.Copy
	follower *statelog.Follower
	logger   *slog.Logger
	as       statelog.Claimant // this member
	answers  *respondent       // nil is that it answers nobody

	mu      sync.Mutex // guards the following
	current time.Time  // when the copy had all that the log had then; before that, when this member began to wait
	whole   bool       // it has had all, once
	failure string
	at      time.Time // of the failure
	told    bool      // that it is behind
}

// How long a standby waits between two looks at the log, after an error, and after one that only a person can mend.
const (
	standbyPace    = 250 * time.Millisecond
	standbyAgain   = 2 * time.Second
	standbyRefused = 30 * time.Second
)

// newStandby takes the state directory.
func newStandby(ctx context.Context, log *StateLog, as statelog.Claimant) (*standby, error) {
	b := &standby{log: log, logger: log.logger, as: as, current: time.Now()}
	var err error
	if b.copy, err = checkpoint.OpenCopy(ctx, log.cfg.State.Dir, checkpoint.Options{Logger: log.logger}); err != nil {
		return nil, err
	}
	b.follower = statelog.NewFollower(statelog.FollowOptions{
		Place: log.place, Of: statelog.Identity{Cluster: log.cluster.Name, UID: log.cluster.UID}, Copy: b.copy, Keep: b.hasNewer,
	})
	return b, nil
}

// hasNewer says whether the directory is newer than the log: it is this member's own state, and nobody else of its task
// has led since. A copy never is, even where this member was the last to claim the log.
func (b *standby) hasNewer(last statelog.Claimant) bool {
	isOurs := last.Lease == "" || last.Lease == b.as.Lease
	return b.copy.IsState() && (last.Member == b.as.Member || !isOurs)
}

// lastStep is how long the last look at the log may stand still. One that is cut off has to be begun anew.
const lastStep = 2 * time.Second

// follow follows the log until the returned function is called.
func (b *standby) follow(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			began := time.Now()
			err := b.follower.Step(ctx)
			wait := b.note(ctx, began, err)
			if err == nil && b.answers != nil {
				b.answers.respond(ctx)
			}
			select {
			case <-time.After(wait):
			case <-over:
				return
			case <-ctx.Done():
			}
		}
	}()
	return func() {
		defer cancel()
		close(over)
		b.awaitLast(done)
		cancel()
		<-done
	}
}

// awaitLast waits for the end of the last look as long as that gets on.
func (b *standby) awaitLast(done <-chan struct{}) {
	for {
		before := b.follower.Parts()
		select {
		case <-done:
			return
		case <-time.After(lastStep):
		}
		if b.follower.Parts() == before {
			return
		}
	}
}

// close lets go of the log and of the directory. A second call does nothing.
func (b *standby) close() error {
	b.follower.Close()
	return b.copy.Close()
}

// note notes how a look at the log ended, and says when the next one is due.
func (b *standby) note(ctx context.Context, began time.Time, err error) (wait time.Duration) {
	var damaged *checkpoint.DamagedError
	var full *disk.FullError
	switch {
	case err == nil:
		b.caughtUp(began)
		return standbyPace
	case ctx.Err() != nil:
		return 0
	case errors.As(err, &damaged):
		b.logger.Warn("the copy of the log of the state is damaged; it is filled anew", "dir", b.log.cfg.State.Dir, "error", err)
		if err := b.copy.Begin(ctx); err != nil {
			b.fail(err)
		}
		return standbyAgain
	case IsForGood(err), errors.As(err, &full):
		wait = standbyRefused
	default:
		wait = standbyAgain
	}
	b.fail(err)
	return wait
}

// standbyPatience is how long a standby may be behind before a person is told.
const standbyPatience = time.Minute

func (b *standby) fail(err error) {
	b.mu.Lock()
	b.failure, b.at = err.Error(), time.Now()
	tell := !b.told && b.at.Sub(b.current) > standbyPatience
	b.told = b.told || tell
	b.mu.Unlock()
	if tell {
		b.logger.Error("this standby cannot follow the log of the state; a takeover takes longer meanwhile", "log", b.log.place.Name, "error", err)
	}
}

func (b *standby) caughtUp(at time.Time) {
	b.mu.Lock()
	told := b.told
	b.current, b.whole, b.failure, b.told = at, true, "", false
	b.mu.Unlock()
	if told {
		b.logger.Info("this standby follows the log of the state again", "log", b.log.place.Name)
	}
}

// status is how far it is behind.
func (b *standby) status() *telemetry.Standby {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &telemetry.Standby{Whole: b.whole, LagSeconds: time.Since(b.current).Seconds(), LastError: b.failure}
	if s.LastError != "" {
		s.LastErrorTime = b.at
	}
	return s
}
