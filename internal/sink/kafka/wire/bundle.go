package wire

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
)

// Bundle has batches share requests, where one broker leads their partitions. They are of one transaction, or of none.
// Each lane brings one batch at a time, and gets the answer for it alone.
//
// What is there is sent when every lane has brought a batch or has left, by a lane for each request: so nobody waits
// for a time, and there are no further goroutines.
type Bundle struct {
	cluster *Cluster
	most    int // bytes of batches in a request, if it is not one larger batch

	mu      sync.Mutex
	lanes   int // that have not left
	width   int // of them, how many are on their way at once
	waiting []*parcel
}

// Bundle is for so many lanes, of which no more than width are on their way at once. Their contexts end together.
func (c *Cluster) Bundle(lanes, width, most int) *Bundle {
	return &Bundle{cluster: c, lanes: lanes, width: width, most: most}
}

// Produce is Cluster.Produce in a request that may be shared. With an error the lane has left: what is sent again goes
// alone, so it waits for no other lane, and none waits for it.
func (b *Bundle) Produce(ctx context.Context, request ProduceRequest) (ProduceResult, error) {
	p := &parcel{ProduceRequest: request, load: make(chan []*parcel, 1)}
	if p.leader, p.err = b.cluster.leader(ctx, p.Topic, p.Partition); p.err == nil {
		b.share(ctx, p)
	}
	if p.err != nil {
		b.change(func() { b.lanes, b.width = b.lanes-1, b.width-1 })
	}
	return p.result, p.err
}

// Leave is for a lane that has no more batches.
func (b *Bundle) Leave() { b.change(func() { b.lanes-- }) }

// share waits until the parcel is sent, or sends it with others.
func (b *Bundle) share(ctx context.Context, p *parcel) {
	b.change(func() { b.waiting = append(b.waiting, p) })
	var load []*parcel
	select {
	case load = <-p.load:
	case <-ctx.Done():
		if b.takeBack(p) {
			p.err = ctx.Err()
			return
		}
		load = <-p.load
	}
	if len(load) == 0 {
		return
	}
	b.cluster.produce(ctx, load)
	for _, other := range load[1:] {
		other.load <- nil
	}
}

// takeBack says whether the parcel was still waiting.
func (b *Bundle) takeBack(p *parcel) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.waiting, p)
	if i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
	}
	return i >= 0
}

// change has what waits sent, if nobody else is to come after the change.
func (b *Bundle) change(by func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	by()
	if len(b.waiting) < min(b.lanes, b.width) {
		return
	}
	for _, load := range loads(b.waiting, b.most) {
		load[0].load <- load
	}
	b.waiting = nil
}

// loads sorts parcels into requests.
func loads(parcels []*parcel, most int) [][]*parcel {
	slices.SortFunc(parcels, func(a, b *parcel) int {
		return cmp.Or(cmp.Compare(a.leader, b.leader), strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return cut(parcels, func(begun []*parcel, next *parcel) bool {
		size := len(next.Batch)
		for _, p := range begun {
			size += len(p.Batch)
		}
		return next.leader == begun[0].leader && size <= most
	})
}
