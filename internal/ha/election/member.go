package election

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/klog/v2"
)

// Ask asks the other members, by the Lease that this one holds, which of them reaches the brokers. It returns the first
// that says so, or ctx's error where nobody does.
func (m *Member) Ask(ctx context.Context) (by string, err error) {
	m.mu.Lock()
	m.talk.ours, m.talk.by = rand.Text(), ""
	m.mu.Unlock()
	m.lock.demand()
	defer func() {
		m.mu.Lock()
		m.talk.ours = ""
		m.mu.Unlock()
		m.lock.demand()
	}()
	for {
		m.mu.Lock()
		changed, by := m.changed, m.talk.by
		m.mu.Unlock()
		if by != "" {
			return by, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// Question is what the holder asks, and nobody has answered; "" is nothing.
func (m *Member) Question() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.talk.theirs
}

// Answer tells the holder that this member reaches the brokers. It does nothing where the question is not open any
// more.
func (m *Member) Answer(ctx context.Context, question string) error {
	ctx, cancel := context.WithTimeout(ctx, m.options.Duration)
	defer cancel()
	for {
		lease, err := m.options.leases.get(ctx)
		if err != nil || holderOf(lease) == m.options.Self || lease.Annotations[asks] != question {
			return err
		}
		if id, _, _ := strings.Cut(lease.Annotations[answers], " "); id == question {
			return nil
		}
		lease.Annotations = maps.Clone(lease.Annotations)
		lease.Annotations[answers] = question + " " + m.options.Self
		if _, err = m.options.leases.update(ctx, lease); !apierrors.IsConflict(err) {
			return err
		}
	}
}

// question is watcher's.
func (m *Member) question() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.talk.ours
}

// Options are what a Member is made of.
type Options struct {
	Config   *rest.Config
	Place    Place
	Self     string // unlike that of any other member, and the same for as long as this one has its state
	Duration time.Duration
	// Shared is what the members of the Lease share, as the Lease notes it. Judge says why another one's may not have
	// the Lease together with this one; nil is that they may.
	Shared string
	Judge  func(theirs string) error
	Logger *slog.Logger

	leases leases // for tests; nil is the API server's
}

// Member is one of those who would lead. Its methods may be called from any goroutine.
type Member struct {
	options Options
	lock    *lock
	elector *leaderelection.LeaderElector

	mu      sync.Mutex // guards the following
	changed chan struct{}
	holder  string    // as the API server said last; "" is nobody, or not known
	since   time.Time // when it became the holder
	known   bool      // it has said something
	ours    time.Time // when it said last that this member holds the Lease
	refused error     // why this member can never hold it
	trouble trouble
	talk    talk
	term    context.CancelCauseFunc // ends the present one; nil is none
	rest    time.Time               // until when it does not want to lead
	stop    context.CancelFunc      // of the elector's present run
}

// trouble is that the API server does not answer for the Lease.
type trouble struct {
	since time.Time // zero is that it answers
	last  error
	told  bool
}

// The parts of a Lease's length.
const (
	renewals = 5 // writes of a holder in it
	tries    = 3 // requests that may take all of their time before a renewal has failed
)

// retry is between two questions of an elector. A standby takes from one to twice as long, and a bit.
const retry = 250 * time.Millisecond

// New returns a member that does nothing before Run.
func New(o Options) (*Member, error) {
	if o.leases == nil {
		c, err := newClient(o.Config, o.Place)
		if err != nil {
			return nil, err
		}
		o.leases = c
	}
	m := &Member{options: o, changed: make(chan struct{})}
	m.lock = &lock{
		leases: o.leases, place: o.Place, self: o.Self, mark: o.Shared, timeout: o.Duration / tries / 2, between: o.Duration / renewals, told: m,
	}
	nothing := func() {}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: m.lock, LeaseDuration: o.Duration, RenewDeadline: o.Duration / 2, RetryPeriod: retry, Name: o.Place.Name,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: nothing},
	})
	if err != nil {
		return nil, fmt.Errorf("prepare the election by the Lease %s: %w", o.Place, err)
	}
	m.elector = elector
	return m, nil
}

// Run takes part in the election until ctx ends. Then it gives the Lease back.
func (m *Member) Run(ctx context.Context) {
	for ctx.Err() == nil {
		m.campaign(ctx)
		m.takeRest(ctx)
	}
	m.release(ctx)
}

// campaign runs client-go's elector until it has lost the Lease, or is told to stop. Its log lines are left out: it
// writes one for each try.
func (m *Member) campaign(ctx context.Context) {
	running, stop := context.WithCancel(klog.NewContext(ctx, logr.Discard()))
	defer stop()
	m.mu.Lock()
	m.stop = stop
	resting := time.Now().Before(m.rest)
	m.mu.Unlock()
	if !resting {
		m.elector.Run(running)
	}
}

// takeRest gives the Lease back for as long as this member does not want it.
func (m *Member) takeRest(ctx context.Context) {
	m.mu.Lock()
	left := time.Until(m.rest)
	m.mu.Unlock()
	if left <= 0 || ctx.Err() != nil {
		return
	}
	m.release(ctx)
	select {
	case <-time.After(left):
	case <-ctx.Done():
	}
}

// release gives the Lease back. Where the API server does not answer, it runs out by itself.
func (m *Member) release(ctx context.Context) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.options.Duration/tries)
	defer cancel()
	for {
		err := m.lock.release(bounded)
		switch {
		case err == nil, apierrors.IsNotFound(err):
			return
		case !apierrors.IsConflict(err):
			m.options.Logger.Warn("the Lease could not be released; another member takes over when it has run out", "lease", m.options.Place.String(), "error", err)
			return
		}
	}
}

// Resign ends the member's wish to lead for the time, and lets others try. It does not wait.
func (m *Member) Resign(wait time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rest = time.Now().Add(wait)
	if m.stop != nil {
		m.stop()
	}
}

// Lead waits until the API server says that this member holds the Lease, and returns a context that ends when it names
// another holder: with an *OtherLeadsError as its cause. The caller calls end when its term is over by itself.
//
// The error is ctx's, a *RightsError where the member may not use the Lease, or what Judge says of those who hold it.
func (m *Member) Lead(ctx context.Context) (term context.Context, end context.CancelFunc, err error) {
	asked := time.Now()
	m.lock.demand()
	for {
		m.mu.Lock()
		changed := m.changed
		if m.holder == m.options.Self && m.ours.After(asked) {
			term, cancel := context.WithCancelCause(ctx)
			m.term = cancel
			m.mu.Unlock()
			return term, func() { cancel(nil) }, nil
		}
		err := m.refused
		m.mu.Unlock()
		if err != nil {
			return nil, nil, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
}

// Standing is how things stand for a member.
type Standing struct {
	Holder  string    // of the Lease, as the API server said last; "" is nobody
	Since   time.Time // when it became so, by its own clock; zero is not known
	Self    bool      // it is this member
	Trouble error     // why the API server does not answer for the Lease; nil is that it does
}

// Standing is how things stand now.
func (m *Member) Standing() Standing {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Standing{Holder: m.holder, Since: m.since, Self: m.known && m.holder == m.options.Self, Trouble: m.trouble.last}
}

// saw is watcher's.
func (m *Member) saw(lease *coordinationv1.Lease) error {
	now, holder := time.Now(), holderOf(lease)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.recovered()
	if holder != "" && holder != m.options.Self && m.term != nil {
		m.term(&OtherLeadsError{Place: m.options.Place, Holder: holder})
		m.term = nil
	}
	var err error
	if holder != m.options.Self {
		if err = judged(lease, m.options.Place, m.options.Judge); err != nil {
			m.refused = err
		}
	}
	if m.holder, m.known = holder, true; holder == m.options.Self {
		m.ours = now
	}
	if m.since = (time.Time{}); holder != "" && lease.Spec.AcquireTime != nil {
		m.since = lease.Spec.AcquireTime.Time
	}
	m.talk.read(lease.Annotations, holder == m.options.Self, m.options.Self)
	m.wake()
	return err
}

// wake tells those who wait. The caller holds mu.
func (m *Member) wake() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// failed is watcher's. A Lease that is not there, or that somebody else wrote meanwhile, is no trouble.
func (m *Member) failed(err error) {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if missing := missingRights(m.options.Place, err); missing != nil && !m.known {
		m.refused = missing
		m.wake()
		return
	}
	if apierrors.IsNotFound(err) {
		return
	}
	now := time.Now()
	if m.trouble.last = err; m.trouble.since.IsZero() {
		m.trouble.since = now
	}
	if !m.trouble.told && now.Sub(m.trouble.since) >= m.options.Duration {
		m.trouble.told = true
		m.options.Logger.Warn("the API server does not answer for the Lease; who leads goes on, and nobody takes over meanwhile",
			"lease", m.options.Place.String(), "error", err)
	}
}

// recovered notes that the API server answers. The caller holds mu.
func (m *Member) recovered() {
	if m.trouble.told {
		m.options.Logger.Info("the API server answers for the Lease again", "lease", m.options.Place.String(),
			"outage", time.Since(m.trouble.since).Round(time.Second))
	}
	m.trouble = trouble{}
}

// AwaitOther asks the API server until another member holds the Lease, and returns its name. found is false where
// nobody else does before ctx ends, or where the API server does not say.
func (m *Member) AwaitOther(ctx context.Context) (holder string, found bool) {
	for ctx.Err() == nil {
		bounded, cancel := context.WithTimeout(ctx, m.lock.timeout)
		lease, err := m.options.leases.get(bounded)
		cancel()
		if err == nil {
			holder = holderOf(lease)
		}
		if err == nil && holder != "" && holder != m.options.Self && isFresh(lease, time.Now()) {
			return holder, true
		}
		select {
		case <-time.After(retry):
		case <-ctx.Done():
		}
	}
	return "", false
}
