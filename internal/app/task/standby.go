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
func (s *standby) hasNewer(last statelog.Claimant) bool {
	isOurs := last.Lease == "" || last.Lease == s.as.Lease
	return s.copy.IsState() && (last.Member == s.as.Member || !isOurs)
}

// lastStep is how long the last look at the log may stand still. One that is cut off has to be begun anew.
const lastStep = 2 * time.Second

// follow follows the log until the returned function is called.
func (s *standby) follow(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			began := time.Now()
			err := s.follower.Step(ctx)
			wait := s.note(ctx, began, err)
			if err == nil && s.answers != nil {
				s.answers.respond(ctx)
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
		s.awaitLast(done)
		cancel()
		<-done
	}
}

// awaitLast waits for the end of the last look as long as that gets on.
func (s *standby) awaitLast(done <-chan struct{}) {
	for {
		before := s.follower.Parts()
		select {
		case <-done:
			return
		case <-time.After(lastStep):
		}
		if s.follower.Parts() == before {
			return
		}
	}
}

// close lets go of the log and of the directory. A second call does nothing.
func (s *standby) close() error {
	s.follower.Close()
	return s.copy.Close()
}

// note notes how a look at the log ended, and says when the next one is due.
func (s *standby) note(ctx context.Context, began time.Time, err error) (wait time.Duration) {
	var damaged *checkpoint.DamagedError
	var full *disk.FullError
	switch {
	case err == nil:
		s.caughtUp(began)
		return standbyPace
	case ctx.Err() != nil:
		return 0
	case errors.As(err, &damaged):
		s.logger.Warn("the copy of the log of the state is damaged; it is filled anew", "dir", s.log.cfg.State.Dir, "error", err)
		if err := s.copy.Begin(ctx); err != nil {
			s.fail(err)
		}
		return standbyAgain
	case IsForGood(err), errors.As(err, &full):
		wait = standbyRefused
	default:
		wait = standbyAgain
	}
	s.fail(err)
	return wait
}

// standbyPatience is how long a standby may be behind before a person is told.
const standbyPatience = time.Minute

func (s *standby) fail(err error) {
	s.mu.Lock()
	s.failure, s.at = err.Error(), time.Now()
	tell := !s.told && s.at.Sub(s.current) > standbyPatience
	s.told = s.told || tell
	s.mu.Unlock()
	if tell {
		s.logger.Error("this standby cannot follow the log of the state; a takeover takes longer meanwhile", "log", s.log.place.Name, "error", err)
	}
}

func (s *standby) caughtUp(at time.Time) {
	s.mu.Lock()
	told := s.told
	s.current, s.whole, s.failure, s.told = at, true, "", false
	s.mu.Unlock()
	if told {
		s.logger.Info("this standby follows the log of the state again", "log", s.log.place.Name)
	}
}

// status is how far it is behind.
func (s *standby) status() *telemetry.Standby {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := &telemetry.Standby{Whole: s.whole, LagSeconds: time.Since(s.current).Seconds(), LastError: s.failure}
	if status.LastError != "" {
		status.LastErrorTime = s.at
	}
	return status
}
