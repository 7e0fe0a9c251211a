package replay

import (
	"net/http"
	"strings"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/kubecdc/kubecdc/bench"
)

// session is what has happened in one world.
type session struct {
	world     World
	resources map[string]*resource // by the path of their collection
	released  chan struct{}
	release   func()

	mu      sync.Mutex // guards the following
	watches int
	newest  map[*resource]int // the versions of the last events
	leases  coordinationv1.LeaseList
	written int // how often Leases were
}

func newSession(world World) *session {
	released := make(chan struct{})
	s := &session{
		world: world, resources: map[string]*resource{}, newest: map[*resource]int{},
		released: released, release: sync.OnceFunc(func() { close(released) }),
	}
	s.resources["/api/v1/pods"] = world.newPods(bench.PodTemplate())
	for i := range world.Kinds {
		res := world.newCustom(i)
		s.resources["/apis/"+group+"/v1/"+res.name] = res
	}
	if !world.Held {
		s.release()
	}
	return s
}

// version is where the server stands with the resource.
func (s *session) version(res *resource) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(s.newest[res], s.world.firstVersion()+s.world.Past)
}

func (s *session) advance(res *resource, version int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest[res] = max(s.newest[res], version)
}

// count adds so many watches, and returns how many there were.
func (s *session) count(more int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches += more
	return s.watches
}

// serve answers a request whose path is within the world.
func (s *session) serve(w http.ResponseWriter, r *http.Request, path string) {
	w.Header().Set("Content-Type", "application/json")
	switch res := s.resources[strings.TrimSuffix(path, "/")]; {
	case strings.HasPrefix(path, leasesPath):
		s.serveLease(w, r)
	case res == nil:
		s.about(w, r, path)
	case r.URL.Query().Has("watch"):
		s.watch(w, r, res)
	default:
		s.list(w, r, res)
	}
}
