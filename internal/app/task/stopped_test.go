package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/pipeline"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/test/natsserver"
)

// village is an API server with one Lease, which a member that is not played holds from some time on.
type village struct {
	t      *testing.T
	url    string
	access cluster.Access
	waits  bool // the other member takes the Lease when it is released

	mu      sync.Mutex
	lease   *coordinationv1.Lease // nil before one is made
	version int                   // of it
	denied  bool                  // nobody may see it
}

func newVillage(t *testing.T) *village {
	t.Helper()
	v := &village{t: t}
	server := httptest.NewServer(v)
	t.Cleanup(server.Close)
	v.url = server.URL
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a}}]\nclusters: [{name: a, cluster: {server: %q}}]\n", server.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	v.access = cluster.Access{Kubeconfig: file}
	return v
}

func (v *village) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Path == "/readyz":
	case !strings.Contains(r.URL.Path, "/leases"):
		fmt.Fprint(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"0b6f3c1e-8a4d"}}`)
	default:
		v.serveLease(w, r)
	}
}

func (v *village) serveLease(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if r.Method != http.MethodGet {
		written := new(coordinationv1.Lease)
		if err := json.NewDecoder(r.Body).Decode(written); err != nil {
			v.t.Error(err)
		}
		if v.lease != nil && written.ResourceVersion != v.lease.ResourceVersion {
			refuse(w, http.StatusConflict, "Conflict")
			return
		}
		v.store(written)
		if isReleased := *v.lease.Spec.HolderIdentity == ""; isReleased && v.waits {
			v.take()
		}
	}
	if v.denied {
		refuse(w, http.StatusForbidden, "Forbidden")
		return
	}
	if v.lease == nil {
		refuse(w, http.StatusNotFound, "NotFound")
		return
	}
	v.lease.APIVersion, v.lease.Kind = "coordination.k8s.io/v1", "Lease"
	if err := json.NewEncoder(w).Encode(v.lease); err != nil {
		v.t.Error(err)
	}
}

func refuse(w http.ResponseWriter, code int, reason string) {
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, reason, code)
}

// store makes it the newest version of the Lease. The caller holds mu.
func (v *village) store(lease *coordinationv1.Lease) {
	v.version++
	v.lease = lease
	v.lease.ResourceVersion = strconv.Itoa(v.version)
}

// take gives the Lease to the other member. The caller holds mu.
func (v *village) take() {
	other, length := "other_1", int32(2)
	v.lease.Spec.HolderIdentity, v.lease.Spec.LeaseDurationSeconds = &other, &length
	v.store(v.lease)
}

// hold makes a Lease that somebody has just renewed, "" is nobody, and that nobody may see where it is denied.
func (v *village) hold(holder string, denied bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	length, now := int32(10), metav1.NowMicro()
	v.store(&coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &length, RenewTime: &now}})
	v.denied = denied
}

// overtake gives the Lease to the other member.
func (v *village) overtake() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.take()
}

// share shares a task as a member that is asked to stop while it leads. lead is what it does from then on.
func (v *village) share(broker string, lead func(of *Term) error) error {
	v.t.Helper()
	led := false
	ctx, stop := context.WithTimeout(v.t.Context(), logPatience)
	defer stop()
	err := Share(ctx, v.options(broker, func(_ context.Context, of *Term) error {
		led = true
		stop()
		return lead(of)
	}))
	if !led {
		v.t.Fatalf("it never led: %v", err)
	}
	return err
}

// options are those of a member that leads as lead does.
func (v *village) options(broker string, lead func(ctx context.Context, of *Term) error) Options {
	v.t.Helper()
	text := fmt.Sprintf("cluster: a\nresources: [pods]\nsinks: [{name: bus, nats: {url: %q}}]\nstate: {dir: %q, log: {sink: bus}}\nha: {lease: ns/a, duration: 2s}\n",
		broker, v.t.TempDir())
	cfg, err := config.Parse("config.yaml", []byte(text), os.LookupEnv)
	if err == nil {
		err = cfg.Validate()
	}
	if err != nil {
		v.t.Fatal(err)
	}
	return Options{
		Access: v.access, Config: cfg, Logger: slog.New(slog.NewTextHandler(v.t.Output(), nil)), Lead: lead,
		StandBy: func(context.Context, *Member) (func(), error) { return func() {}, nil },
	}
}

// TestI7I10AStopLeavesTheRestToWhoLeads: a member that is stopped just when it is fenced has done well if another one
// leads, and whatever else goes wrong is told all the same.
func TestI7I10AStopLeavesTheRestToWhoLeads(t *testing.T) {
	server := natsserver.Start(t)
	fenced := fmt.Errorf("deliver to sink bus: %w", &sink.PermanentError{Fenced: true, Err: errors.New("another exporter writes to the stream")})
	refused := &sink.PermanentError{Err: errors.New("wrong password")}
	late := fmt.Errorf("deliver to sink bus: %w", &sink.LateError{Err: errors.New("message 7 came after it was opened")})
	left := &pipeline.UndeliveredError{Timeout: time.Second, Queued: map[string]int{"bus": 3}}
	full := errors.New("no space left on device")
	for name, c := range map[string]struct {
		err                error
		overtaken, standby bool // another member leads already; one leads when this one has gone
		clean              bool
	}{
		"fenced by who leads":                  {err: errors.Join(fenced, left), overtaken: true, clean: true},
		"fenced, and nobody leads":             {err: errors.Join(fenced, left)},
		"last words, and a standby":            {err: errors.Join(late, left), standby: true, clean: true},
		"last words, and nobody else":          {err: errors.Join(late, left)},
		"fenced, and the disk is full":         {err: errors.Join(fenced, full), overtaken: true},
		"fenced, and another sink is refused":  {err: errors.Join(fenced, refused), overtaken: true},
		"out of time, without any other cause": {err: left, overtaken: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVillage(t)
			v.waits = c.standby
			err := v.share(server.URL(), func(*Term) error {
				if c.overtaken {
					v.overtake()
				}
				return c.err
			})
			if (err == nil) != c.clean {
				t.Errorf("the stop came to %v", err)
			}
		})
	}
	t.Run("fenced while its queues empty", func(t *testing.T) {
		v := newVillage(t)
		err := v.share(server.URL(), func(of *Term) error {
			v.overtake()
			of.Observe(pipeline.NopObserver()).Stopped("bus", fenced)
			select {
			case <-of.Over.Done():
			case <-time.After(logPatience):
				t.Error("it goes on delivering what another one delivers")
			}
			return left
		})
		if err != nil {
			t.Errorf("the stop came to %v", err)
		}
	})
}

// TestI10AMemberThatLosesTheLeaseStandsBy, however soon it has noticed: it does not end.
func TestI10AMemberThatLosesTheLeaseStandsBy(t *testing.T) {
	server := natsserver.Start(t)
	for range 10 { // it is a race who is told first
		v := newVillage(t)
		ctx, stop := context.WithTimeout(t.Context(), logPatience)
		o := v.options(server.URL(), func(ctx context.Context, _ *Term) error {
			v.overtake()
			<-ctx.Done()
			return nil
		})
		terms := 0
		o.StandBy = func(context.Context, *Member) (func(), error) {
			if terms++; terms == 2 {
				stop()
			}
			return func() {}, nil
		}
		if err := Share(ctx, o); err != nil || terms != 2 {
			t.Errorf("it ended with %v after standing by %d times", err, terms)
		}
		stop()
	}
}
