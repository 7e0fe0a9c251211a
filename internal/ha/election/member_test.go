package election

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is an API server with Leases.
type server struct {
	mu      sync.Mutex
	of      map[string]*coordinationv1.Lease
	version int
	writes  map[string]int
	err     error        // that it answers with
	takes   atomic.Int64 // how long it thinks before it answers, a time.Duration
}

func newServer() *server {
	return &server{of: map[string]*coordinationv1.Lease{}, writes: map[string]int{}}
}

func (s *server) answer(with error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = with
}

func (s *server) written(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes[name]
}

// cable is how one member reaches a Lease of the server.
type cable struct {
	*server
	name string
	cut  *atomic.Bool
}

func leasesOf() schema.GroupResource {
	return schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
}

var errCut = errors.New("no route to host")

func (c cable) do(how func() error) error {
	time.Sleep(time.Duration(c.takes.Load()))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut.Load() {
		return errCut
	}
	if c.err != nil {
		return c.err
	}
	return how()
}

func (c cable) get(context.Context) (lease *coordinationv1.Lease, err error) {
	err = c.do(func() error {
		if lease = c.of[c.name].DeepCopy(); lease == nil {
			return apierrors.NewNotFound(leasesOf(), c.name)
		}
		return nil
	})
	return lease, err
}

func (c cable) write(to *coordinationv1.Lease, refusal func(had *coordinationv1.Lease) error) (lease *coordinationv1.Lease, err error) {
	err = c.do(func() error {
		if err := refusal(c.of[c.name]); err != nil {
			return err
		}
		c.version++
		c.writes[c.name]++
		lease = to.DeepCopy()
		lease.ResourceVersion = fmt.Sprint(c.version)
		c.of[c.name] = lease.DeepCopy()
		return nil
	})
	return lease, err
}

func (c cable) create(_ context.Context, to *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	return c.write(to, func(had *coordinationv1.Lease) error {
		if had != nil {
			return apierrors.NewAlreadyExists(leasesOf(), c.name)
		}
		return nil
	})
}

func (c cable) update(_ context.Context, to *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	return c.write(to, func(had *coordinationv1.Lease) error {
		if had == nil || had.ResourceVersion != to.ResourceVersion {
			return apierrors.NewConflict(leasesOf(), c.name, errors.New("it has changed"))
		}
		return nil
	})
}

func (c cable) list(context.Context) (all []coordinationv1.Lease, err error) {
	err = c.do(func() error {
		for _, lease := range c.of {
			all = append(all, *lease.DeepCopy())
		}
		return nil
	})
	return all, err
}

func (c cable) remove(_ context.Context, name string) error {
	return c.do(func() error {
		delete(c.of, name)
		return nil
	})
}

const duration = 10 * time.Second

// slowest is the longest time between two questions of a member that does not hold the Lease.
const slowest = retry * 22 / 10

// candidate is a member that runs.
type candidate struct {
	*Member
	cut   atomic.Bool
	leave func()
}

func (s *server) join(t *testing.T, name, sinks string) *candidate {
	t.Helper()
	c := &candidate{}
	var err error
	c.Member, err = New(Options{
		Place: Place{"ns", "a"}, Self: Self(name, "1"), Duration: duration, Shared: sinks, Logger: slog.New(slog.DiscardHandler), leases: cable{s, "a", &c.cut},
		Judge: func(theirs string) error {
			if theirs != sinks {
				return fmt.Errorf("they write to %s", theirs)
			}
			return nil
		},
	})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Run(ctx)
	}()
	c.leave = func() {
		cancel()
		<-done
	}
	return c
}

// leads waits until the candidate does, and returns its term and how long that took.
func (c *candidate) leads(t *testing.T) (context.Context, time.Duration) {
	t.Helper()
	began := time.Now()
	term, _, err := c.Lead(t.Context())
	must(t, err)
	return term, time.Since(began)
}

// inTime plays with a server and a member that leads.
func inTime(t *testing.T, play func(t *testing.T, s *server, first *candidate, term context.Context)) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		first := s.join(t, "first", "bus")
		defer first.leave()
		term, _ := first.leads(t)
		play(t, s, first, term)
	})
}

func TestAStandbyTakesOverWithinASecondOfARelease(t *testing.T) {
	inTime(t, func(t *testing.T, s *server, first *candidate, term context.Context) {
		led := time.Now()
		second := s.join(t, "second", "bus")
		defer second.leave()
		time.Sleep(3 * duration)
		holder, since, _ := second.Standing()
		if err := term.Err(); err != nil || holder != "first_1" || since.Sub(led).Abs() > time.Second {
			t.Fatalf("%q leads since %s, want the first one since %s: %v", holder, since, led, err)
		}
		first.leave()
		if _, took := second.leads(t); took > 700*time.Millisecond {
			t.Errorf("it took %s", took)
		}
	})
}

func TestAStandbyTakesOverWhenADeadLeadersLeaseIsOver(t *testing.T) {
	inTime(t, func(t *testing.T, s *server, first *candidate, _ context.Context) {
		second := s.join(t, "second", "bus")
		defer second.leave()
		time.Sleep(duration)
		first.cut.Store(true) // as one that is killed, or paused: it writes no more
		// the Lease may have been written just now, or be due; the standby sees the one and the other a question later
		most, least := duration+2*slowest, duration-duration/renewals-slowest
		if _, took := second.leads(t); took > most || took < least {
			t.Errorf("it took %s", took)
		}
	})
}

func TestALeaderGoesOnWhileTheAPIServerIsAwayAndEndsWhenItSeesAnother(t *testing.T) {
	inTime(t, func(t *testing.T, s *server, first *candidate, term context.Context) {
		s.answer(errCut)
		time.Sleep(10 * duration)
		if _, _, trouble := first.Standing(); term.Err() != nil || trouble == nil {
			t.Fatalf("an outage ended its term: %v, %v", term.Err(), trouble)
		}
		s.answer(nil)
		time.Sleep(duration)
		if _, _, trouble := first.Standing(); term.Err() != nil || trouble != nil {
			t.Fatalf("the end of the outage ended its term: %v, %v", term.Err(), trouble)
		}
		first.cut.Store(true)
		second := s.join(t, "second", "bus")
		defer second.leave()
		second.leads(t)
		time.Sleep(duration)
		if term.Err() != nil {
			t.Fatal("it ended before it could know")
		}
		first.cut.Store(false)
		<-term.Done()
		var other *OtherLeadsError
		if cause := context.Cause(term); !errors.As(cause, &other) || other.Error() != "second leads now, as the Lease ns/a says" {
			t.Errorf("it ended with %v", cause)
		}
	})
}

// TestI10WhoIsCutOffDoesNotBeginATerm: one that was fenced has to hear that the Lease is its own.
func TestI10WhoIsCutOffDoesNotBeginATerm(t *testing.T) {
	inTime(t, func(t *testing.T, _ *server, first *candidate, _ context.Context) {
		first.cut.Store(true)
		bounded, cancel := context.WithTimeout(t.Context(), 3*duration)
		defer cancel()
		if _, _, err := first.Lead(bounded); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it leads: %v", err)
		}
		first.cut.Store(false)
		if _, took := first.leads(t); took > time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

func TestWhoResignsLetsOthersTry(t *testing.T) {
	inTime(t, func(t *testing.T, s *server, first *candidate, _ context.Context) {
		first.Resign(duration)
		if _, took := first.leads(t); took < duration || took > duration+time.Second {
			t.Errorf("alone, it leads again after %s", took)
		}
		second := s.join(t, "second", "bus")
		defer second.leave()
		time.Sleep(time.Second)
		first.Resign(duration)
		if _, took := second.leads(t); took > 700*time.Millisecond {
			t.Errorf("the other one leads after %s", took)
		}
	})
}

func TestAHolderIsNoBurdenToTheAPIServer(t *testing.T) {
	inTime(t, func(t *testing.T, s *server, first *candidate, _ context.Context) {
		time.Sleep(time.Second) // with what Lead has asked for
		before := s.written("a")
		time.Sleep(10 * duration)
		if writes := s.written("a") - before; writes > 10*renewals || writes < 5*renewals {
			t.Errorf("it wrote %d times in ten lengths of the Lease", writes)
		}
	})
}

func TestWhoMayNotUseTheLeaseIsTold(t *testing.T) {
	for want, answer := range map[string]error{
		"ha.lease: use the Lease ns/a: leases.coordination.k8s.io \"a\" is forbidden: no role: bind a role with the verbs get, create and update on leases of " +
			"group coordination.k8s.io in namespace ns to the exporter's user, or name another Lease": apierrors.NewForbidden(leasesOf(), "a", errors.New("no role")),
		"ha.lease: make the Lease ns/a: namespaces \"ns\" not found: create the namespace, or name another one": apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "ns"),
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer()
			s.answer(answer)
			first := s.join(t, "first", "bus")
			defer first.leave()
			if _, _, err := first.Lead(t.Context()); err == nil || err.Error() != want {
				t.Errorf("have %v\nwant %s", err, want)
			}
		})
	}
}

func TestAnotherReleaseWithTheLeaseIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		first := s.join(t, "first", "bus: stream A")
		first.leads(t)
		second := s.join(t, "second", "lake: topic B")
		_, _, err := second.Lead(t.Context())
		if want := "ha.lease: first holds the Lease ns/a for other sinks: they write to bus: stream A: give each release"; err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("have %v\nwant %s", err, want)
		}
		second.leave()
		first.leave()
		third := s.join(t, "third", "lake: topic B") // nobody of the other one is left
		defer third.leave()
		third.leads(t)
	})
}

func TestNamesOfLeasesAreTakenByTheAPIServer(t *testing.T) {
	seen := map[string]bool{}
	for cluster, want := range map[string]string{
		"prod-eu1": "kubecdc-prod-eu1", "kubernetes": "kubecdc-kubernetes",
		"arn:aws:eks:eu-1:1:cluster/A": "kubecdc-arn-aws-eks-eu-1-1-cluster-a-", "a.b": "kubecdc-a-b-", "a b": "kubecdc-a-b-", "{}": "kubecdc-",
		strings.Repeat("x", 5000): "kubecdc-" + strings.Repeat("x", 46) + "-",
	} {
		name := NameFor(cluster)
		if !strings.HasPrefix(name, want) || len(name) > maxLabel || seen[name] || strings.Contains(name, "--") || strings.HasSuffix(name, "-") {
			t.Errorf("%.20s: %s", cluster, name)
		}
		seen[name] = true
	}
	if at := ParsePlace("ns/a"); at != (Place{"ns", "a"}) || at.String() != "ns/a" {
		t.Errorf("have %+v", at)
	}
	if host := Host(Self("pod-0", "12ab")); host != "pod-0" || Host("x") != "x" {
		t.Errorf("have %s", host)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestARequestIsBounded where the API server takes it and does not answer.
func TestARequestIsBounded(t *testing.T) {
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer silent.Close()
	c, err := newClient(&rest.Config{Host: silent.URL}, Place{"ns", "a"}, 50*time.Millisecond)
	must(t, err)
	var late interface{ Timeout() bool }
	if _, err := c.get(t.Context()); !errors.As(err, &late) || !late.Timeout() {
		t.Errorf("got %v, want that it took too long", err)
	}
}
