package task

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/kubecdc/kubecdc/internal/app/background"
	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/checkpoint/disk"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/ha/statelog"
	"github.com/kubecdc/kubecdc/internal/observe/telemetry"
	"github.com/kubecdc/kubecdc/internal/pipeline"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// errCutOff says that the broker of the log did not answer, so that others should try to lead.
var errCutOff = errors.New("the broker with the log of the state does not answer")

// Begin makes the directory the state that a run of an exporter begins with. Of one that is alone, a directory without
// a state is filled from the log.
func (l *StateLog) Begin(ctx context.Context, of *Term) error {
	if l == nil {
		return nil
	}
	if of.standby != nil {
		return l.takeOver(ctx, of)
	}
	_, found, err := checkpoint.LedAt(ctx, l.cfg.State.Dir, checkpoint.Options{Logger: l.logger})
	if err != nil || found {
		return err
	}
	l.logger.Info("there is no state; reading its log", "dir", l.cfg.State.Dir, "log", l.place.Name)
	err = l.claimBy(ctx, func(ctx context.Context) (*statelog.Claimed, error) { return statelog.Claim(ctx, l.place, l.bid()) })
	var copied *checkpoint.Copy
	if err == nil {
		copied, err = checkpoint.OpenCopy(ctx, l.cfg.State.Dir, checkpoint.Options{Logger: l.logger})
	}
	if err == nil {
		err = l.goOn(ctx, copied)
	}
	if err != nil {
		return fmt.Errorf("restore the state in %s: %w", l.cfg.State.Dir, err)
	}
	return nil
}

// takeOver becomes the only writer of the log, which fences whoever led before, and makes the directory what the leader
// goes on from.
func (l *StateLog) takeOver(ctx context.Context, of *Term) error {
	l.as, l.cut = of.standby.as, of.end
	bounded, cancel := context.WithTimeoutCause(ctx, of.openingTimeout(), errCutOff)
	defer cancel()
	bid := l.bid()
	bid.Judge = JudgeOf(bounded, l.cluster, l.as.Lease)
	err := l.claimBy(bounded, func(ctx context.Context) (*statelog.Claimed, error) { return of.standby.follower.Claim(ctx, bid) })
	if err != nil {
		if ctx.Err() == nil && errors.Is(context.Cause(bounded), errCutOff) {
			err = fmt.Errorf("%w within %s: %w", errCutOff, of.openingTimeout(), err)
		}
		return fmt.Errorf("take over: %w", err)
	}
	return l.goOn(ctx, of.standby.copy)
}

// goOn makes the directory the state that this process goes on from, which has claimed the log.
//
// The directory is newer than the log, by what was saved last and by what is spooled, if it is this member's own state
// and nobody else has led since. Otherwise the log is newer, and the directory counts only as a copy of the log: what
// it has beyond that, others have delivered without knowing it (I11). Of a log that has lost everything, a state or a
// whole copy is an earlier state.
func (l *StateLog) goOn(ctx context.Context, copied *checkpoint.Copy) (err error) {
	defer func() { err = errors.Join(err, copied.Close()) }()
	began, dir, how := time.Now(), l.cfg.State.Dir, "the copy of the log of the state has all of it"
	found, err := l.claimed.Found()
	isEmpty := errors.Is(err, statelog.ErrNothing)
	switch {
	case copied.IsState() && l.claimed.IsNewest(copied.Led()):
		return nil
	case isEmpty && copied.IsState():
		l.logger.Info("the log of the state is empty; the state directory counts", "log", l.place.Name, "dir", dir)
		return nil
	case isEmpty && copied.Place() != nil:
		l.logger.Info("the log of the state is empty; the copy of it counts", "log", l.place.Name, "dir", dir)
		return l.finish(copied, nil)
	case isEmpty:
		l.logger.Info("the log of the state is empty, too; beginning anew", "log", l.place.Name)
		return errors.Join(copied.Close(), checkpoint.Discard(dir))
	case err != nil:
		return err
	case !bytes.Equal(found.End(), copied.Place()):
		how = "state restored from its log"
		if err = copied.Begin(ctx); err == nil {
			_, err = found.Into(ctx, copied.Apply)
		}
	}
	if err == nil {
		err = l.finish(copied, copied.Place())
	}
	if err != nil {
		return err
	}
	l.logger.Info(how, "dir", dir, "log", l.place.Name, "saved", found.Saved, "bytes", found.Bytes,
		"took", time.Since(began).Round(time.Millisecond))
	return nil
}

// finish makes the copy a state, with the files that it has and, of a member, no others: another one has led since.
func (l *StateLog) finish(copied *checkpoint.Copy, place []byte) (err error) {
	if l.as.Member != "" {
		err = l.letters.clear()
	}
	if err == nil {
		err = copied.Finish(place, l.letters.putBack)
	}
	if err != nil {
		return fmt.Errorf("make the copy of the log of the state in %s a state: %w", l.cfg.State.Dir, err)
	}
	return nil
}

// Term is the time in which this member leads a task. The zero value is that of an exporter alone, which ends with the
// process.
type Term struct {
	Over   context.Context             // ends when another member delivers what this one has not; nil is never
	Status func() telemetry.Leadership // who leads; nil of an exporter alone

	standby  *standby          // as what this member waited
	duration time.Duration     // of the Lease
	end      func(cause error) // ends it
	again    func(cause error) // ends it when everything in line is delivered; another one follows
	cutOff   *cutOff
}

// openingTimeout is how long the brokers may take to let this member lead.
func (t *Term) openingTimeout() time.Duration { return max(t.duration, 10*time.Second) }

// Log is the log of the state of a run, which a member that leads has followed already. It is nil where none is
// configured.
func (t *Term) Log(cfg *config.Config, c *cluster.Cluster, logger *slog.Logger) (*StateLog, error) {
	if t.standby == nil {
		return newStateLog(cfg, c, logger)
	}
	return t.standby.log, nil
}

// Prove is how this member proves that it still leads, once the log is attached; nil is that nobody else could lead.
func (t *Term) Prove(log *StateLog) func(context.Context) error {
	if t.standby == nil {
		return nil
	}
	return log.log.Prove
}

// Observe ends the term when a sink says that it is another's.
func (t *Term) Observe(o pipeline.Observer) pipeline.Observer {
	told := o.Stopped
	o.Stopped = func(name string, err error) {
		told(name, err)
		if t.end != nil && sink.IsFenced(err) {
			t.end(err)
		}
	}
	return o
}

// Watch ends the term where this member reaches no broker and another one does, until the returned stop. sinks is since
// when no sink takes records, zero while one does.
func (t *Term) Watch(ctx context.Context, log *StateLog, sinks func() time.Time) (stop func()) {
	if t.cutOff == nil {
		return func() {}
	}
	t.cutOff.failing = func() time.Time { // the earlier of both
		since := sinks()
		if logs := log.failing(); since.IsZero() || !logs.IsZero() && logs.Before(since) {
			return logs
		}
		return since
	}
	return background.Run(ctx, func(ctx context.Context) {
		if why := t.cutOff.watch(ctx); why != nil {
			t.end(why)
		}
	})
}

// standby follows the log of the state into this member's directory, so that a takeover reads only what came since.
type standby struct {
	log      *StateLog
	copy     *checkpoint.Copy
	follower *statelog.Follower
	as       statelog.Claimant     // this member
	respond  func(context.Context) // answers a leader that asks; nil answers nobody

	mu      sync.Mutex // guards the following
	current time.Time  // when the copy had all that the log had then; before that, when this member began to wait
	whole   bool       // it has had all, once
	trouble telemetry.Trouble
	told    bool // that it is behind
}

// How long a standby waits between two looks at the log, after an error, and after one that only a person can mend.
const (
	standbyPace    = 250 * time.Millisecond
	standbyAgain   = 2 * time.Second
	standbyRefused = 30 * time.Second
)

// newStandby takes the state directory.
func newStandby(ctx context.Context, log *StateLog, as statelog.Claimant) (*standby, error) {
	b := &standby{log: log, as: as, current: time.Now()}
	var err error
	if b.copy, err = checkpoint.OpenCopy(ctx, log.cfg.State.Dir, checkpoint.Options{Logger: log.logger}); err != nil {
		return nil, err
	}
	// The directory is newer than the log if it is this member's own state, and nobody else of its task has led since.
	// A copy never is, even where this member was the last to claim the log.
	keep := func(last statelog.Claimant) bool {
		isOurs := last.Lease == "" || last.Lease == b.as.Lease
		return b.copy.IsState() && (last.Member == b.as.Member || !isOurs)
	}
	b.follower = &statelog.Follower{
		Place: log.place, Of: statelog.Identity{Cluster: log.cluster.Name, UID: log.cluster.UID}, Copy: b.copy, Keep: keep,
	}
	return b, nil
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
			if err == nil && s.respond != nil {
				s.respond(ctx)
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
	switch {
	case err == nil:
		s.mu.Lock()
		told := s.told
		s.current, s.whole, s.trouble, s.told = began, true, telemetry.Trouble{}, false
		s.mu.Unlock()
		if told {
			s.log.logger.Info("this standby follows the log of the state again", "log", s.log.place.Name)
		}
		return standbyPace
	case ctx.Err() != nil:
		return 0
	case errors.As(err, new(*checkpoint.DamagedError)):
		s.log.logger.Warn("the copy of the log of the state is damaged; it is filled anew", "dir", s.log.cfg.State.Dir, "error", err)
		if err := s.copy.Begin(ctx); err != nil {
			s.fail(err)
		}
		return standbyAgain
	case IsForGood(err), errors.As(err, new(*disk.FullError)):
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
	s.trouble = telemetry.TroubleOf(err)
	tell := !s.told && time.Since(s.current) > standbyPatience
	s.told = s.told || tell
	s.mu.Unlock()
	if tell {
		s.log.logger.Error("this standby cannot follow the log of the state; a takeover takes longer meanwhile", "log", s.log.place.Name, "error", err)
	}
}

// status is how far it is behind.
func (s *standby) status() *telemetry.Standby {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &telemetry.Standby{Whole: s.whole, LagSeconds: time.Since(s.current).Seconds(), Trouble: s.trouble}
}
