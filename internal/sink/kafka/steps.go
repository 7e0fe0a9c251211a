package kafka

import (
	"slices"
	"strings"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// plan is one batch of the contract, sorted by partition. Its partitions are written side by side. What proves to a
// reader of the log that something else is there waits until that is durable: it goes in a later step.
type plan struct {
	messages []sink.Message
	touched  []*partition // each has the indexes of its messages, and the step that each is sent in
	steps    int
	floor    int              // the first step that the next message may be in
	last     map[string]place // by object: where its last message goes; nil is that no message waits
}

// place is where a message goes, and in which step.
type place struct {
	partition *partition
	step      int
}

// part is what of the partition's messages a step sends.
func (p *plan) part(step int, of *partition) []int32 {
	from, _ := slices.BinarySearch(of.steps, int32(step))
	until, _ := slices.BinarySearch(of.steps, int32(step+1))
	return of.indexes[from:until]
}

// add adds an atom to the partition.
func (p *plan) add(to *partition, from, end int) {
	step := p.step(&p.messages[from], to)
	for i := from; i < end; i++ {
		to.indexes, to.steps = append(to.indexes, int32(i)), append(to.steps, int32(step))
	}
	p.steps = max(p.steps, step+1)
}

// The operations that matter here, as texts of package change.
const (
	endsSnapshot = "snapshot.end"
	isGap        = "gap"
	isActor      = "actor"
)

// namedByHash is in the id of a note of which nobody can tell whose it is (change.ShorterNote).
const namedByHash = "/%25sha256-"

// step is the step that the message, which goes to the partition, is sent in.
func (p *plan) step(m *sink.Message, to *partition) int {
	if p.last == nil {
		return 0
	}
	step := p.floor
	if n := len(to.steps); n > 0 {
		step = max(step, int(to.steps[n-1]))
	}
	object := m.Object()
	switch {
	case m.Op == endsSnapshot:
		step = max(step, p.behind(object, to))
	case m.Op == isGap && strings.Contains(m.ID, namedByHash):
		step = p.steps
		p.floor = step + 1
	case m.Op != isActor && !strings.HasSuffix(object, "//"):
		if before, found := p.last[object]; found && before.partition != to {
			step = max(step, before.step+1)
		}
		p.last[object] = place{to, step}
	}
	return step
}

// behind is the first step after all that the other partitions get of the resource whose snapshot the frame ends. A
// consumer that finds the end of a snapshot then finds the snapshot, in whatever topics.
func (p *plan) behind(frame string, to *partition) (step int) {
	resource := frame[:strings.IndexByte(frame, '/')+1]
	for _, of := range p.touched {
		for i := len(of.indexes) - 1; i >= 0 && of != to; i-- {
			if strings.HasPrefix(p.messages[of.indexes[i]].Object(), resource) {
				step = max(step, int(of.steps[i])+1)
				break
			}
		}
	}
	return step
}
