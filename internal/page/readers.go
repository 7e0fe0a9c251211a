package page

import (
	"fmt"
	"net"
	"sync"
)

// maxReaders is how many there may be of this host, and of all others together, and perAddress of one of these.
const maxReaders, perAddress = 16, 4

// readers are the places of those who read /events: of this host, and of others, of whom none takes all.
type readers struct {
	mu   sync.Mutex // guards the following
	here int
	away int
	of   map[string]int // the others by address
}

// enter takes a place, or says why there is none.
func (r *readers) enter(remote string, here bool) (leave func(), why string) {
	from, _, err := net.SplitHostPort(remote)
	if err != nil {
		from = remote
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case here && r.here >= maxReaders, !here && r.away >= maxReaders:
		return nil, fmt.Sprintf("%d readers are connected already: close one", maxReaders)
	case !here && r.of[from] >= perAddress:
		return nil, fmt.Sprintf("%d readers of your address are connected already: close one", perAddress)
	case here:
		r.here++
		return func() { r.leave(func() { r.here-- }) }, ""
	}
	if r.of == nil {
		r.of = map[string]int{}
	}
	r.away++
	r.of[from]++
	return func() {
		r.leave(func() {
			r.away--
			if r.of[from]--; r.of[from] == 0 {
				delete(r.of, from)
			}
		})
	}, ""
}

func (r *readers) leave(give func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	give()
}
