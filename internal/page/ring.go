package page

import (
	"bytes"
	"sync"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// ringSize is how many changes are remembered.
const ringSize = 1024

// Change is one change as readers of /events get it: names and versions, never an object.
type Change struct {
	Seq             uint64        `json:"seq"` // from 1, one more each change
	Time            time.Time     `json:"time"`
	Op              string        `json:"op"`
	Resource        string        `json:"resource"`
	Namespace       string        `json:"namespace,omitempty"`
	Name            string        `json:"name,omitempty"`
	ResourceVersion string        `json:"resourceVersion,omitempty"`
	Reason          change.Reason `json:"reason,omitempty"`
}

// ring holds the last changes. Its slots keep their memory, and share none with records: those are gone when they are
// delivered.
type ring struct {
	mu    sync.Mutex // guards the following
	slots [ringSize]slot
	last  uint64 // the Seq given last
}

type slot struct {
	time   time.Time
	op     change.Op
	stream *change.Stream
	reason change.Reason
	text   []byte // namespace, name and version, with a zero byte between
}

func (r *ring) add(rec *change.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	s := &r.slots[r.last%ringSize]
	s.time, s.op, s.stream, s.reason = rec.Received, rec.Op, rec.Stream, ""
	if rec.Snapshot != nil {
		s.reason = rec.Snapshot.Reason
	}
	namespace := rec.Key.Namespace
	if rec.Key.Name == "" {
		namespace = rec.Stream.Namespace
	}
	s.text = append(append(s.text[:0], namespace...), 0)
	s.text = append(append(s.text, change.Shown(rec.Key.Name, change.MaxNamed)...), 0)
	s.text = append(s.text, rec.ResourceVersion...)
}

// after returns the changes after the Seq, oldest first, and how many are forgotten already.
func (r *ring) after(seq uint64) (changes []Change, missed uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last > ringSize && seq < r.last-ringSize {
		missed = r.last - ringSize - seq
		seq += missed
	}
	for seq++; seq <= r.last; seq++ {
		s := &r.slots[seq%ringSize]
		part := bytes.SplitN(s.text, []byte{0}, 3)
		changes = append(changes, Change{
			Seq: seq, Time: s.time, Op: s.op.String(), Resource: s.stream.Resource.String(), Reason: s.reason,
			Namespace: string(part[0]), Name: string(part[1]), ResourceVersion: string(part[2]),
		})
	}
	return changes, missed
}

// newest is the Seq given last.
func (r *ring) newest() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}
