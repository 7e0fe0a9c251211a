package task

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kubecdc/kubecdc/internal/ha/election"
	"github.com/kubecdc/kubecdc/internal/ha/statelog"
)

// leaseServer answers for a Lease that somebody holds, or for which nobody answers.
type leaseServer struct {
	held      atomic.Bool
	forbidden atomic.Bool
}

func (s *leaseServer) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if s.forbidden.Load() {
		http.Error(w, "no", http.StatusForbidden)
		return
	}
	holder := ""
	if s.held.Load() {
		holder = "other_1"
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"a"},"spec":{"holderIdentity":%q,"leaseDurationSeconds":10,"renewTime":%q}}`,
		holder, time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"))
}

// aLogWithAnotherLeaseIsRefused while somebody holds that: two releases with one log would fence each other in turns.
// Where nobody does, the Lease was renamed.
func aLogWithAnotherLeaseIsRefused(t *testing.T, r *logRig) {
	api := &leaseServer{}
	server := httptest.NewServer(api)
	defer server.Close()
	r.cluster.Rest = &rest.Config{Host: server.URL}
	r.lead("a")
	r.commit(3)
	r.awaitLogged()
	second := r.other(100)
	second.cluster.Rest = r.cluster.Rest
	take := func() error {
		b := second.standBy("b")
		b.as.Lease = "ns/another"
		of := &task{cluster: second.cluster, lease: election.ParsePlace(b.as.Lease)}
		err := second.startAs(&Term{claimant: b.as, standby: b, mayClaim: of.mayClaim, duration: 10 * time.Second, end: func(error) {}})
		return errors.Join(err, b.close())
	}
	var refused *statelog.RefusedError
	for _, forbidden := range []bool{false, true} {
		api.held.Store(true)
		api.forbidden.Store(forbidden)
		if err := take(); !errors.As(err, &refused) || !statelog.IsForGood(err) || !strings.Contains(err.Error(), "the Lease ns/"+r.cluster.Name+" write to it, and this one has ns/another:") {
			t.Fatalf("forbidden %t: %v", forbidden, err)
		}
	}
	r.commit(1)
	r.awaitLogged() // it was not fenced
	r.end()
	api.held.Store(false)
	api.forbidden.Store(false)
	r.must(take())
	if have := second.saved().Streams["pods"].ResourceVersion; have != "4" {
		t.Errorf("it goes on at %s, want 4", have)
	}
	second.end()
}
