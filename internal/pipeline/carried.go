package pipeline

import (
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// defaultMarkLag is how many records a mark may lag. A mark that carries ids costs as many bytes as they have, compressed, so it is
// not saved with every batch; and what lies behind a mark is read at the next start.
const defaultMarkLag = 4096

// carried are the records that lie before a mark in its sink's log and that may come again after a crash: they are not part of the
// saved state, as a rule because another sink has not taken them. With their ids beside it the mark need not wait for them (I3), so
// that no tail is longer than what the line's window holds and a little more (I6).
type carried struct {
	found   []string         // ids that the log had when it was opened
	records []*change.Record // that were acknowledged since
	cluster string           // the uid, for their ids
	from    sink.Mark        // an earlier mark, which carries nothing
}

// all are the ids, in the order of the log within each stream.
func (c *carried) all() []string {
	ids := c.found
	for _, rec := range c.records {
		ids = append(ids, rec.ID(c.cluster).String())
	}
	return ids
}

// carry lets a mark that lags go on, with the ids of what keeps it back. While records
// are on disk it is not known, and the positions move on. The caller holds mu.
func (l *Line) carry(listener int, frontier uint64, last *part) {
	lst, held := l.listeners[listener], l.held[listener]
	seq, mark, ok := l.marks[listener].Newest()
	if held.mark != "" {
		seq, mark = max(held.seq, l.skipped[listener], seq), held.mark
	}
	if !ok || mark == l.saved[listener] || l.marks[listener].Lag(seq) < l.markLag || lst.spools() || lst.isBehind() {
		return
	}
	if l.skipped[listener] < frontier {
		lst.delivered.compared()
	}
	found, ok := lst.delivered.remaining()
	if !ok {
		return
	}
	of := carried{found: found, cluster: lst.clusterUID, from: l.plain[listener]}
	for _, p := range l.streams {
		p.tracker.Written(listener, func(rec *change.Record) { of.records = append(of.records, rec) })
	}
	l.mark(listener, mark, last)
	last.carried[lst.Name], l.carries[listener] = of, true
	l.marks[listener] = checkpoint.Marks{}
	l.marks[listener].Written(seq, mark)
}
