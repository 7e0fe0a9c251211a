// Package planted takes locks against the order, in each of the ways in which it can happen, and in none where it only
// looks so. A line that is against the order says with which locks.
package planted

import (
	"slices"
	"sync"
)

type House struct {
	mu   sync.Mutex
	room *Room
	key  Key
	told func()
}

type Room struct {
	mu    sync.RWMutex
	house *House
}

type Key struct{ mu sync.Mutex }

type opener interface{ open() }

func (h *House) open() { h.lock() }

func (h *House) lock() {
	h.mu.Lock() // want House.mu under Room.mu, House.mu under House.mu, House.mu under Key.mu
	defer h.mu.Unlock()
}

func (r *Room) enter() {
	r.mu.RLock() // want Room.mu under Key.mu
	r.mu.RUnlock()
}

// Down is in order.
func (h *House) Down() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.room.mu.Lock()
	defer h.room.mu.Unlock()
	h.key.mu.Lock()
	h.key.mu.Unlock()
}

func (r *Room) ThroughAnInterface(o opener) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o.open()
}

func (r *Room) Open() { r.ThroughAnInterface(r.house) }

func (h *House) Again() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lock()
}

func (h *House) UnderALeaf() {
	h.key.mu.Lock()
	defer h.key.mu.Unlock()
	h.told()
}

func New(r *Room) *House {
	h := &House{room: r}
	h.told = func() { h.lock() }
	return h
}

func (k *Key) Callback(r *Room) {
	k.mu.Lock()
	slices.SortFunc([]int{2, 1}, func(a, b int) int { r.enter(); return a - b })
	k.mu.Unlock()
}

func (r *Room) Tried() {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !r.house.mu.TryLock() { // want House.mu under Room.mu
		return
	}
	r.house.mu.Unlock()
}

// Before gives its lock back first.
func (r *Room) Before() {
	r.mu.Lock()
	if r.house == nil {
		r.mu.Unlock()
		return
	}
	r.mu.Unlock()
	r.house.lock()
}

// Elsewhere takes the lock in a goroutine that holds none.
func (r *Room) Elsewhere() {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all sync.WaitGroup
	go r.house.lock()
	all.Go(r.house.lock)
}

// Wait gives the caller's lock back for a while.
func (r *Room) Wait() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wait()
}

func (r *Room) wait() {
	r.mu.Unlock()
	r.house.lock()
	r.mu.Lock()
}

// each calls what it is given, which differs from caller to caller.
func each(steps ...func()) {
	for _, step := range steps {
		step()
	}
}

func (r *Room) Steps() {
	r.mu.Lock()
	each(func() {})
	r.mu.Unlock()
	each(r.house.lock)
}
