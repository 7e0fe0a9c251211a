package task

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/destination"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/ha/election"
	"github.com/kubecdc/kubecdc/internal/ha/statelog"
	"github.com/kubecdc/kubecdc/internal/pipeline"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// isOvertaken says whether other exporters explain all of the error: what ended the term, and what was left in the
// queues since then.
func isOvertaken(err error) bool {
	overtaken := false
	return all(err, func(part error) (explained bool) {
		switch e := part.(type) {
		default:
			explained = part == errUnreachable
		case *sink.PermanentError:
			explained = e.Fenced
		case *sink.LateError, *election.OtherLeadsError:
			explained = true
		case *pipeline.UndeliveredError:
			return true
		}
		overtaken = overtaken || explained
		return explained
	}) && overtaken
}

// all says whether each of the errors that are joined in err has a cause that holds.
func all(err error, holds func(error) bool) bool {
	if err == nil || holds(err) {
		return err != nil
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return all(e.Unwrap(), holds)
	case interface{ Unwrap() []error }:
		for _, part := range e.Unwrap() {
			if !all(part, holds) {
				return false
			}
		}
		return true
	}
	return false
}

// errUnreachable says that this leader reaches no broker that it needs, and another member does.
var errUnreachable = errors.New("this exporter does not reach its brokers")

// lookTime is how long one look at a broker may take.
const lookTime = 5 * time.Second

func lookAt(ctx context.Context, at sink.Sink) error {
	target, ok := at.(sink.Checker)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	_, err := target.Check(ctx)
	return err
}

// cutOff notices that a leader reaches no broker, and lets another member lead that does. With nobody who says so it
// stays: a change of leaders would mend nothing.
type cutOff struct {
	others   func(ctx context.Context) (by string, err error) // asks the other members which of them reaches the brokers
	look     func(ctx context.Context) []error                // as Member.look
	failing  func() time.Time                                 // since when nothing can be written; zero is that it can
	duration time.Duration                                    // of the Lease, and how long that has to last
	logger   *slog.Logger
}

// watch returns why another member should lead, or nil when ctx ends.
func (c *cutOff) watch(ctx context.Context) error {
	// A leader waits longer each time between two questions, for as long as nothing can be written.
	wait := backoff.NewExponentialBackOff(backoff.WithInitialInterval(c.duration), backoff.WithMaxInterval(5*time.Minute),
		backoff.WithRandomizationFactor(0), backoff.WithMaxElapsedTime(0))
	between := c.duration / 5
	for pause := between; ; {
		if !sink.Pause(ctx, pause, nil) {
			return nil
		}
		since := c.failing()
		if pause = between; since.IsZero() || time.Since(since) < c.duration {
			wait.Reset()
			continue
		}
		if by := c.ask(ctx); by != "" {
			return fmt.Errorf("%w for %s, and %s does", errUnreachable, time.Since(since).Round(time.Second), election.Host(by))
		}
		pause = wait.NextBackOff()
	}
}

// ask returns which member reaches the brokers while this one does not, "" where none says so.
func (c *cutOff) ask(ctx context.Context) string {
	if now := c.look(ctx); now[0] == nil && slices.Contains(now[1:], nil) || ctx.Err() != nil {
		return "" // something can be written
	}
	c.logger.Warn("this exporter leads and does not reach its brokers; it asks the others whether they do")
	bounded, cancel := context.WithTimeout(ctx, c.duration+4*lookTime)
	defer cancel()
	by, err := c.others(bounded)
	if err != nil || c.failing().IsZero() {
		return ""
	}
	return by
}

// cooldown keeps members that give the Lease to each other from doing so again and again: who gave it up answers
// nobody for a while, which doubles each time, and is forgotten when an hour has passed without.
type cooldown struct {
	until  time.Time
	length time.Duration
}

// resigned notes that this member has given up the Lease.
func (c *cooldown) resigned(now time.Time) {
	const first, most, forgotten = time.Minute, 32 * time.Minute, time.Hour
	if now.Sub(c.until) > forgotten {
		c.length = 0
	}
	c.length = min(max(2*c.length, first), most)
	c.until = now.Add(c.length)
}

// mayAnswer says whether this member may say that it reaches the brokers.
func (c *cooldown) mayAnswer(now time.Time) bool { return !now.Before(c.until) }

// LogPlace is the place of the log of the state as it is configured.
func LogPlace(cfg *config.Config, c *cluster.Cluster, retry sink.RetryFunc) (statelog.Place, error) {
	at := slices.IndexFunc(cfg.Sinks, func(s config.Sink) bool { return s.Name == cfg.State.Log.Sink })
	if at < 0 {
		return statelog.Place{}, usage.Errorf("state.log.sink: there is no sink %q: name one of the sinks", cfg.State.Log.Sink)
	}
	d, err := destination.Of(&cfg.Sinks[at], c)
	if err != nil {
		return statelog.Place{}, err
	}
	if d.StateLog == nil {
		return statelog.Place{}, usage.Errorf("state.log.sink: sink %q cannot keep a log of the state: name a sink in kafka or nats", cfg.Sinks[at].Name)
	}
	place, err := d.StateLog(stateLogName(cfg.State.Log.Name, c.Name), retry)
	if err != nil {
		return place, usage.Errorf("state.log: %w", err)
	}
	place.Name += " (state.log)"
	return place, nil
}

// stateLogName is the template with the cluster's name in it, as topics and buckets may be named.
func stateLogName(template, cluster string) string {
	return strings.ReplaceAll(template, "{cluster}", strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, cluster))
}

// stillness is how long nobody may have written to a log that is taken from exporters with another Lease, where the API
// server does not say whether one of them holds that.
const stillness = time.Minute

// JudgeOf says why the log may not be taken from who wrote it last. Members of one task share the Lease. Those with
// another one are of another release, or the Lease was renamed: then nobody may hold the old one.
func JudgeOf(ctx context.Context, c *cluster.Cluster, lease string) func(last statelog.Claimant, wrote time.Time) error {
	return func(last statelog.Claimant, wrote time.Time) error {
		if last.Lease == "" || last.Lease == lease {
			return nil
		}
		held, err := election.IsHeld(ctx, c.Leases, election.ParsePlace(last.Lease))
		if err != nil {
			held = time.Since(wrote) < stillness
		}
		if !held {
			return nil
		}
		return statelog.OtherLease(last.Lease, lease)
	}
}
