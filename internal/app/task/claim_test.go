package task

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kubecdc/kubecdc/internal/ha/statelog"
)

// aLogWithAnotherLeaseIsRefused while somebody holds that: two releases with one log would fence each other in turns.
// Where nobody does, the Lease was renamed.
func aLogWithAnotherLeaseIsRefused(t *testing.T, r *logRig) {
	v := newVillage(t)
	r.cluster.Leases = &rest.Config{Host: v.url}
	r.lead("a")
	r.commit(3)
	r.awaitLogged()
	second := r.other(100)
	second.cluster.Leases = r.cluster.Leases
	take := func() error {
		b := second.standBy("b")
		b.as.Lease = "ns/another"
		err := second.startAs(&Term{standby: b, duration: 10 * time.Second, end: func(error) {}})
		return errors.Join(err, b.close())
	}
	var refused *statelog.RefusedError
	for _, forbidden := range []bool{false, true} {
		v.hold("other_1", forbidden)
		if err := take(); !errors.As(err, &refused) || !statelog.IsForGood(err) || !strings.Contains(err.Error(), "the Lease ns/"+r.cluster.Name+" write to it, and this one has ns/another:") {
			t.Fatalf("forbidden %t: %v", forbidden, err)
		}
	}
	r.commit(1)
	r.awaitLogged() // it was not fenced
	r.end()
	v.hold("", false)
	r.must(take())
	if have := second.saved().Streams["pods"].ResourceVersion; have != "4" {
		t.Errorf("it goes on at %s, want 4", have)
	}
	second.end()
}
