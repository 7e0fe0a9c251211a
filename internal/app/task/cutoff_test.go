package task

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecdc/kubecdc/internal/ha/election"
)

var errAway = errors.New("no route to host")

// others are the members that a leader asks. One of them answers a second later, where one does.
type others struct {
	by    string
	asked int
}

func (o *others) Ask(ctx context.Context) (string, error) {
	o.asked++
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
	}
	if o.by == "" {
		<-ctx.Done()
		return "", ctx.Err()
	}
	return o.by, nil
}

// leading is a leader that looks after its brokers.
type leading struct {
	cutOff
	others others
	now    []error // as Member.look
	since  time.Time
}

func lead(by string) *leading {
	l := &leading{others: others{by: by}, now: []error{nil, nil, nil}}
	l.cutOff = cutOff{
		others: l.others.Ask, look: func(context.Context) []error { return l.now }, failing: func() time.Time { return l.since },
		duration: 10 * time.Second, logger: slog.New(slog.DiscardHandler),
	}
	return l
}

// during is why the leader would have another one lead, within the time.
func (l *leading) during(t *testing.T, limit time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	return l.watch(ctx)
}

// TestALeaderWithoutBrokersLetsOneLeadThatHasThem, and not before its outage is as long as the Lease.
func TestALeaderWithoutBrokersLetsOneLeadThatHasThem(t *testing.T) {
	for name, now := range map[string][]error{
		"no sink": {nil, errAway, errAway}, "no log": {errAway},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := lead(election.Self("other", "1"))
				l.now, l.since = now, time.Now()
				began := time.Now()
				err := l.during(t, time.Minute)
				if !errors.Is(err, errUnreachable) || !strings.Contains(err.Error(), "and other does") {
					t.Fatalf("it goes on: %v", err)
				}
				if took := time.Since(began); took < 10*time.Second || took > 14*time.Second {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

// TestALeaderStaysWhereNobodyIsBetterOff: with nobody who answers, it asks more and more seldom. Where one of its sinks
// works, or nothing fails, or the brokers are back when the answer comes, it does not ask or does not go.
func TestALeaderStaysWhereNobodyIsBetterOff(t *testing.T) {
	cut := []error{errAway}
	for name, c := range map[string]struct {
		by       string
		now      []error
		fails    bool
		from, to int // questions in an hour
	}{
		"nobody answers":           {"", cut, true, 10, 25},
		"a sink and the log work":  {"other_1", []error{nil, errAway, nil}, true, 0, 0},
		"nothing is to be written": {"other_1", cut, false, 0, 0},
		"the brokers answer":       {"other_1", []error{nil, nil, nil}, true, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := lead(c.by)
				if l.now = c.now; c.fails {
					l.since = time.Now()
				}
				if err := l.during(t, time.Hour); err != nil || l.others.asked < c.from || l.others.asked > c.to {
					t.Errorf("after %d questions it ends with %v", l.others.asked, err)
				}
			})
		})
	}
	t.Run("the brokers are back", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := lead("other_1")
			l.now, l.since = cut, time.Now()
			look := l.look
			l.look = func(ctx context.Context) []error {
				l.since = time.Time{} // they are back when the answer comes
				return look(ctx)
			}
			if err := l.during(t, time.Minute); err != nil || l.others.asked != 1 {
				t.Errorf("after %d questions it ends with %v", l.others.asked, err)
			}
		})
	})
}

// TestMembersDoNotGiveTheLeaseToEachOtherAgainAndAgain: who gave it up says nothing for longer and longer.
func TestMembersDoNotGiveTheLeaseToEachOtherAgainAndAgain(t *testing.T) {
	var r cooldown
	now := time.Now()
	if !r.mayAnswer(now) {
		t.Error("one that never led may not answer")
	}
	given := 0
	for end := now.Add(24 * time.Hour); now.Before(end); now = now.Add(10 * time.Second) {
		if r.mayAnswer(now) {
			r.resigned(now)
			given++
		}
	}
	if given < 40 || given > 55 {
		t.Errorf("in a day it was given up %d times, want about one in half an hour", given)
	}
	if now = now.Add(2 * time.Hour); !r.mayAnswer(now) {
		t.Error("it is never forgotten")
	}
	if r.resigned(now); r.length != time.Minute {
		t.Errorf("behind a quiet hour it says nothing for %s", r.length)
	}
}
