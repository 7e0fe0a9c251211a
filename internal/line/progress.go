package line

import (
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// progress is what is known of one stream's records. It is pure; the line's mu guards it. Sets of listeners are bit
// masks.
type progress struct {
	tracker   checkpoint.Tracker
	takers    uint64 // the listeners that were to write any of the stream's records
	added     uint64 // records put in
	committed uint64 // records that are part of the saved state

	away    uint64            // the listeners that miss the stream
	returns map[string]uint64 // by sink that comes back: the generation of the snapshot with which it does
}

// sendAway makes the listener miss the stream.
func (p *progress) sendAway(s *seat) {
	p.away |= s.bit()
	delete(p.returns, s.Name)
	p.tracker.Excuse(s.index)
}

// expect notes that the stream is asked for the snapshot with which the sink comes back.
func (p *progress) expect(sinkName string, generation uint64) {
	if p.returns == nil {
		p.returns = map[string]uint64{}
	}
	p.returns[sinkName] = generation
}

// isReturn says whether the record is the one with which its sink comes back.
func (p *progress) isReturn(rec *change.Record) bool {
	if rec.Op != change.Gap || rec.Sink == "" || rec.Snapshot.Reason != change.Absent {
		return false
	}
	generation, asked := p.returns[rec.Sink]
	return asked && generation == rec.Snapshot.Generation
}

// missing are the listeners that miss the record: the one that comes back with it, whose bit that is, misses no more.
func (p *progress) missing(rec *change.Record, sinksOwn uint64) uint64 {
	if p.away&sinksOwn != 0 && p.isReturn(rec) {
		return p.away &^ sinksOwn
	}
	return p.away
}
