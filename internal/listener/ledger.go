package listener

import (
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/fifo"
)

// ledger is what is to be saved of what the sink has acknowledged.
type ledger struct {
	entries []entry
	mark    string
	marked  bool
	size    int // bytes of the records, about
}

// drop forgets what was acknowledged.
func (l *ledger) drop() { *l = ledger{} }

// Saving is what one save has of a sink: what it has acknowledged, and what goes to disk for it.
type Saving struct {
	entries []entry
	mark    string
	marked  bool
	chunks  []fifo.Chunk
	extent  fifo.Spool
	spools  bool // the spool is another one than the state has
	back    []*change.Record
	taken   []*change.Record // what goes to disk
}

// entry is an item in the ledger.
type entry struct {
	checkpoint.Item
	seq uint64
	as  entryKind
}

// entryKind is what becomes of an item.
type entryKind byte

const (
	acked   entryKind = iota // the sink has it
	spooled                  // it goes to disk
	logged                   // the sink has it from disk
	leftOut                  // the sink is not given it: it was on disk, and is not configured
)

// maxUnsaved is how much the ledger of a sink holds in memory at most, in bytes, about: while the state cannot be saved
// the sink is given nothing more (I6).
const maxUnsaved = 8 << 20

// itemBytes is what an item takes beside the names of its object, about.
const itemBytes = 320

func (l *ledger) add(one entry) {
	l.entries = append(l.entries, one)
	l.size += itemBytes + len(one.Key.Namespace) + len(one.Key.Name)
}

// Chunks are what goes to disk, whose values the store encodes.
func (s *Saving) Chunks() []fifo.Chunk { return s.chunks }

// IsEmpty says whether there is nothing to save.
func (s *Saving) IsEmpty() bool {
	return len(s.entries) == 0 && !s.marked && len(s.chunks) == 0 && !s.spools
}
