package replay

import (
	"net/http"
	"strings"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// Counts is what a world was asked for.
type Counts struct {
	Lists   int // requests for pages of lists
	Probes  int // lists of one object, which ask where the server stands
	Watches int
}

// session is what has happened in one world.
type session struct {
	world     World
	resources map[string]*resource // by the path of their collection
	released  chan struct{}

	mu      sync.Mutex // guards the following
	counts  Counts
	newest  map[*resource]int // the versions of the last events
	rings   map[*resource]*ring
	isFreed bool
	leases  coordinationv1.LeaseList
	written int // how often Leases were
}

func newSession(world World, fixture string) *session {
	s := &session{
		world: world, resources: map[string]*resource{}, released: make(chan struct{}),
		newest: map[*resource]int{}, rings: map[*resource]*ring{},
	}
	s.resources["/api/v1/pods"] = world.newPods(fixture)
	for i := range world.Kinds {
		res := world.newCustom(i)
		s.resources["/apis/"+group+"/v1/"+res.name] = res
	}
	if !world.Held {
		s.release()
	}
	return s
}

func (s *session) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isFreed {
		s.isFreed = true
		close(s.released)
	}
}

// awaitRelease returns false when done comes first.
func (s *session) awaitRelease(done <-chan struct{}) bool {
	select {
	case <-s.released:
		return true
	case <-done:
		return false
	}
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

// ring is the resource's, rendered when it is watched first.
func (s *session) ring(res *resource) *ring {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rings[res] == nil {
		s.rings[res] = newRing(s.world, res.object)
	}
	return s.rings[res]
}

func (s *session) countList(limit string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if limit == "1" {
		s.counts.Probes++
	} else {
		s.counts.Lists++
	}
}

// countWatch returns the number of the watch.
func (s *session) countWatch() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.Watches++
	return s.counts.Watches
}

func (s *session) countsNow() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
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
