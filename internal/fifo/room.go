package fifo

// Limit bounds a queue or a batch. Both fields must be positive.
type Limit struct {
	Bytes   int // sum of change.Record.Size
	Records int
}

// Room is what may be held at once, and how much of that is taken (I6). Room is reserved before a record gets its Seq,
// so that a record that is numbered always fits.
type Room struct{ limit, used Limit }

// newRoom returns room of which nothing is taken.
func newRoom(limit Limit) Room { return Room{limit: limit} }

// Reserve takes room for one record of the size, or returns false when there is none. A record above the whole limit
// has room when nothing is taken: it must pass, and nothing else passes beside it.
func (r *Room) Reserve(size int) bool {
	if r.used.Records > 0 && (r.used.Bytes+size > r.limit.Bytes || r.used.Records >= r.limit.Records) {
		return false
	}
	r.Overdraw(size)
	return true
}

// Overdraw takes room that there is not. The caller bounds by other means what is held.
func (r *Room) Overdraw(size int) {
	r.used.Bytes += size
	r.used.Records++
}

// Cancel gives a reservation back.
func (r *Room) Cancel(size int) {
	r.used.Bytes -= size
	r.used.Records--
}

// isHalfFree says whether less than half is taken.
func (r *Room) isHalfFree() bool {
	return 2*r.used.Bytes < r.limit.Bytes && 2*r.used.Records < r.limit.Records
}

// Used is what is taken.
func (r *Room) Used() Limit { return r.used }
