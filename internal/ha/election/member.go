package election

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// Ask asks the other members, by the Lease that this one holds, which of them reaches the brokers. It returns the first
// that says so, or ctx's error where nobody does.
func (m *Member) Ask(ctx context.Context) (by string, err error) {
	m.ask(rand.Text())
	defer m.ask("")
	err = m.await(ctx, func() bool {
		by = m.answered
		return by != ""
	})
	return by, err
}

// ask makes it the question of this member; "" is none.
func (m *Member) ask(question string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.question, m.answered = question, ""
	m.due.Ring()
}

// await waits until that is so, which is looked at under mu.
func (m *Member) await(ctx context.Context, isSo func() bool) error {
	for {
		m.mu.Lock()
		changed, is := m.changed, isSo()
		m.mu.Unlock()
		if is {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Question is what the holder asks, and nobody has answered; "" is nothing.
func (m *Member) Question() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.foreign
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
	// Placer says whether this member is to lead, where the exporter has several tasks; nil is whenever nobody does.
	Placer Placer

	leases leases // for tests; nil is the API server's
}

// Member is one of those who would lead. Its methods may be called from any goroutine.
type Member struct {
	options Options
	due     sink.Bell // the next turn is now, and the API server answers it

	// Of Run's goroutine.
	lease *coordinationv1.Lease // as the API server had it last; nil is not known
	fresh time.Time             // when its holder was seen alive last

	mu      sync.Mutex // guards the following
	changed chan struct{}
	holder  string    // as the API server said last; "" is nobody, or not known
	since   time.Time // when it became the holder
	known   bool      // it has said something
	asked   uint64    // so many requests were sent
	ours    uint64    // the last of them whose answer said that this member holds the Lease
	refused error     // why this member can never hold it
	trouble trouble
	term    context.CancelCauseFunc // ends the present one; nil is none
	rest    time.Time               // until when it does not want to lead
	placed  placed
	wrote   time.Time // when it wrote the Lease last

	question string // of this member, which holds the Lease; "" is none
	answered string // by whom; "" is nobody yet
	foreign  string // the question of the holder, which nobody has answered; "" is none
}

// Placer has the member placed until leave, as a Placement does.
type Placer func(m *Member) (leave func())

// placed is what a Placement says.
type placed struct {
	owner string                // who is to lead; "" is nobody, or not known yet
	signs bool                  // its holder has a Lease of its own, which says whether it is alive
	free  bool                  // no living exporter holds it
	seen  *coordinationv1.Lease // nil is that there is none
	at    time.Time             // when that was asked for
}

// taskLength is how long a placed task's Lease counts for an exporter that does not look at Placement's.
const taskLength = 5 * time.Minute

// The parts of a Lease's length.
const (
	renewals = 5 // writes of a holder in it
	tries    = 3 // requests that take all of their time
)

// ofLength is how long a request of a member may take whose Lease lasts so long: a third, as with the defaults of
// client-go's leaderelection. A busy API server may need most of that, and each request that is given up costs it
// another TLS handshake.
func ofLength(lease time.Duration) time.Duration { return lease / tries }

// retry is the least time between two questions of a member that does not hold the Lease, and 1+jitter of it the most.
const (
	retry  = 250 * time.Millisecond
	jitter = 1.2
)

// New returns a member that does nothing before Run.
func New(o Options) (*Member, error) {
	if o.leases == nil {
		c, err := newClient(o.Config, o.Place, ofLength(o.Duration))
		if err != nil {
			return nil, err
		}
		o.leases = c
	}
	return &Member{options: o, due: sink.NewBell(), changed: make(chan struct{})}, nil
}

// Run takes part in the election until ctx ends. Then it gives the Lease back.
func (m *Member) Run(ctx context.Context) {
	if m.options.Placer != nil {
		defer m.options.Placer(m)()
	}
	again(ctx, m.due, m.turn)
	m.release(ctx)
}

// turn takes the Lease where it is free, and renews it where it is ours. It returns when the next one is due.
func (m *Member) turn(ctx context.Context) (pause time.Duration) {
	m.mu.Lock()
	resting := time.Until(m.rest)
	m.mu.Unlock()
	if resting > 0 {
		m.release(ctx)
		return resting
	}
	if m.options.Placer != nil {
		if pause, goesOn := m.heed(ctx); !goesOn {
			return pause
		}
	}
	if m.isOurs() && m.write(ctx, m.options.Self) == nil {
		return m.length() / renewals
	}
	err := m.request(ctx, m.options.leases.get)
	if apierrors.IsNotFound(err) {
		m.lease, err = nil, nil
	}
	if err == nil && m.isFree() && m.write(ctx, m.options.Self) == nil {
		return m.length() / renewals
	}
	return wait.Jitter(retry, jitter)
}

// length is how long the Lease lasts that this member writes.
func (m *Member) length() time.Duration {
	if m.options.Placer != nil {
		return taskLength
	}
	return m.options.Duration
}

// place takes what the Placement says.
func (m *Member) place(by placed) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.placed = by
	m.due.Ring()
}

// rests says whether the member does not want to lead for now.
func (m *Member) rests() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Now().Before(m.rest)
}

// isElsewhere says whether another member is to lead. The caller holds mu.
func (m *Member) isElsewhere() bool {
	return m.options.Placer != nil && m.placed.owner != m.options.Self
}

// heed does what the Placement says, and says whether the member tries to hold the Lease. One that leads and is not to
// ends its term, and then gives the Lease back.
func (m *Member) heed(ctx context.Context) (pause time.Duration, goesOn bool) {
	m.mu.Lock()
	by, elsewhere, term, question := m.placed, m.isElsewhere(), m.term, m.question
	isNewer := by.at.After(m.wrote)
	m.mu.Unlock()
	if by.seen != nil && isNewer && (m.lease == nil || by.seen.ResourceVersion != m.lease.ResourceVersion) {
		if m.lease == nil || !reflect.DeepEqual(by.seen.Spec, m.lease.Spec) {
			m.fresh = by.at
		}
		m.lease = by.seen
		_ = m.saw(by.seen) // which is noted there
	}
	isDue := term == nil || m.lease != nil && m.lease.Annotations[asks] != question || time.Since(m.fresh) >= taskLength/renewals
	switch {
	case !elsewhere && (!m.isOurs() || isDue):
		return 0, true
	case !elsewhere, by.owner == "": // nothing is due, or nobody else could
		return taskLength / renewals, false
	case !m.isOurs():
	case term != nil:
		term(fmt.Errorf("%w: %s has the Lease %s next", ErrMoved, Host(by.owner), m.options.Place))
	default:
		m.release(ctx)
	}
	return taskLength / renewals, false
}

func (m *Member) isOurs() bool { return m.lease != nil && holderOf(m.lease) == m.options.Self }

// isFree says whether the Lease is ours, or nobody's, or its holder was not seen alive for all of its length. Only this
// member's clock counts.
func (m *Member) isFree() bool {
	if m.lease == nil || m.isOurs() || holderOf(m.lease) == "" {
		return true
	}
	m.mu.Lock()
	by := m.placed
	m.mu.Unlock()
	if by.signs && by.seen != nil && holderOf(by.seen) == holderOf(m.lease) {
		return by.free
	}
	length := m.options.Duration
	// One that lasts as long as a placed task's has a holder with a sign of life, or somebody has taken that away.
	if lasts := lengthOf(m.lease); lasts > 0 && (m.options.Placer == nil || lasts != taskLength) {
		length = lasts
	}
	return time.Since(m.fresh) > length
}

// write makes the holder the Lease's, as it was seen last; "" is nobody.
func (m *Member) write(ctx context.Context, holder string) error {
	length, question := time.Second, ""
	if holder != "" {
		m.mu.Lock()
		length, question = m.length(), m.question
		m.mu.Unlock()
	}
	do := m.options.leases.create
	if m.lease != nil {
		do = m.options.leases.update
	}
	lease := m.options.Place.renew(m.lease.DeepCopy(), holder, length)
	if lease.Annotations == nil {
		lease.Annotations = map[string]string{}
	}
	if holder != "" {
		if lease.Spec.LeaseTransitions == nil {
			lease.Spec.LeaseTransitions = new(int32)
		} else if holderOf(m.lease) != holder {
			*lease.Spec.LeaseTransitions++
		}
		lease.Annotations[marked] = m.options.Shared
		if m.options.Placer != nil {
			lease.Labels = map[string]string{role: ofTask}
		}
	}
	// Of the answers, the one to the present question stays.
	if id, _, _ := strings.Cut(lease.Annotations[answers], " "); id != question || question == "" {
		delete(lease.Annotations, answers)
	}
	if delete(lease.Annotations, asks); question != "" {
		lease.Annotations[asks] = question
	}
	err := m.request(ctx, func(ctx context.Context) (*coordinationv1.Lease, error) { return do(ctx, lease) })
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wrote = time.Now()
	return err
}

// request does one request, and notes what came of it: the error is also one of what Judge says.
func (m *Member) request(ctx context.Context, how func(context.Context) (*coordinationv1.Lease, error)) error {
	m.mu.Lock()
	m.asked++
	m.mu.Unlock()
	lease, err := how(ctx)
	if err != nil {
		if ctx.Err() == nil {
			m.failed(err)
		}
		return err
	}
	if m.lease == nil || !reflect.DeepEqual(lease.Spec, m.lease.Spec) {
		m.fresh = time.Now()
	}
	m.lease = lease
	return m.saw(lease)
}

// leastRelease is how long a busy API server is given to take a Lease back.
const leastRelease = 3 * time.Second

// release gives the Lease back, if it is ours. Where the API server does not answer, it runs out by itself.
func (m *Member) release(ctx context.Context) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(2*ofLength(m.options.Duration), leastRelease))
	defer cancel()
	for {
		err := m.request(bounded, m.options.leases.get)
		if err == nil && m.isOurs() {
			err = m.write(bounded, "")
		}
		switch {
		case err == nil, apierrors.IsNotFound(err):
			return
		case apierrors.IsConflict(err):
		case bounded.Err() == nil && !apierrors.IsForbidden(err):
			sink.Pause(bounded, retry, nil)
		default:
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
	m.due.Ring()
}

// Lead waits until the API server says that this member holds the Lease, and returns a context that ends when it names
// another holder: with an *OtherLeadsError as its cause. The caller calls end when its term is over by itself.
//
// The error is ctx's, why the member may not use the Lease, or what Judge says of those who hold it.
func (m *Member) Lead(ctx context.Context) (term context.Context, end context.CancelFunc, err error) {
	m.mu.Lock()
	before := m.asked
	m.due.Ring()
	m.mu.Unlock()
	var cancel context.CancelCauseFunc
	var refused error
	err = m.await(ctx, func() bool {
		if m.holder != m.options.Self || m.ours <= before || time.Now().Before(m.rest) || m.isElsewhere() {
			refused = m.refused
			return refused != nil
		}
		term, cancel = context.WithCancelCause(ctx)
		m.term = cancel
		return true
	})
	if err = cmp.Or(err, refused); err != nil {
		return nil, nil, err
	}
	return term, func() { m.over(cancel) }, nil
}

// over notes that the term has ended by itself.
func (m *Member) over(cancel context.CancelCauseFunc) {
	cancel(nil)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.term = nil
	m.due.Ring()
}

// Standing is who holds the Lease, as the API server said last, "" for nobody, and since when, by the holder's clock,
// zero for not known; and why the API server does not answer for the Lease, nil where it does.
func (m *Member) Standing() (holder string, since time.Time, trouble error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.holder, m.since, m.trouble.last
}

// saw notes what the API server says of the Lease, and returns why it is not ours to have.
func (m *Member) saw(lease *coordinationv1.Lease) error {
	holder := holderOf(lease)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.trouble.told {
		m.options.Logger.Info("the API server answers for the Lease again", "lease", m.options.Place.String(),
			"outage", time.Since(m.trouble.since).Round(time.Second))
	}
	m.trouble = trouble{}
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
		m.ours = m.asked
	}
	if m.since = (time.Time{}); holder != "" && lease.Spec.AcquireTime != nil {
		m.since = lease.Spec.AcquireTime.Time
	}
	id, by, _ := strings.Cut(lease.Annotations[answers], " ")
	m.foreign = ""
	switch question := lease.Annotations[asks]; {
	case holder != m.options.Self && id != question:
		m.foreign = question
	case holder == m.options.Self && m.question != "" && id == m.question && by != m.options.Self:
		m.answered = by
	}
	m.wake()
	return err
}

// wake tells those who wait. The caller holds mu.
func (m *Member) wake() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// failed notes that the API server said nothing of the Lease. A Lease that is not there, or that somebody else wrote
// meanwhile, is no trouble.
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
	if m.trouble.lasts(err, m.options.Duration) {
		m.options.Logger.Warn("the API server does not answer for the Lease; who leads goes on, and nobody takes over meanwhile",
			"lease", m.options.Place.String(), "error", err)
	}
}

// AwaitOther asks the API server until another member holds the Lease, and returns its name. found is false where
// nobody else does before ctx ends, or where the API server does not say.
func (m *Member) AwaitOther(ctx context.Context) (holder string, found bool) {
	for ctx.Err() == nil {
		if lease, err := m.options.leases.get(ctx); err == nil {
			if holder = holderOf(lease); holder != "" && holder != m.options.Self && isFresh(lease, time.Now()) {
				return holder, true
			}
		}
		sink.Pause(ctx, retry, nil)
	}
	return "", false
}
