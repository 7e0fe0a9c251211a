package nats

import (
	"context"
	"errors"
	"strconv"
)

// The headers of an atomic batch (ADR-50).
const (
	headerBatchID       = "Nats-Batch-Id"
	headerBatchSequence = "Nats-Batch-Sequence"
	headerBatchCommit   = "Nats-Batch-Commit"
)

// mostAtomic is how many messages a server takes in one atomic batch, if it is not configured to take less.
const mostAtomic = 1000

// sendAtomic sends what is left in atomic batches, one after the other. Each is stored as a whole or not at all, at the
// place that its first message expects. A server that syncs always does so once a batch, which is the point of it.
//
// The server does not say which message it refused a batch for. So after a failure the rest of the Write goes message
// by message, which names it.
func (p *publisher) sendAtomic(ctx context.Context) error {
	for p.acked < len(p.batch) {
		if err := p.sendWhole(ctx, p.whole()); err != nil {
			p.single = true
			return err
		}
	}
	return nil
}

// whole is the end of the next atomic batch.
func (p *publisher) whole() int {
	end, size := p.acked, 0
	for ; end < len(p.batch) && end-p.acked < mostAtomic; end++ {
		size += p.batch[end].Size()
		if size > p.tuning.bytes && end > p.acked {
			break
		}
	}
	return end
}

func (p *publisher) sendWhole(ctx context.Context, end int) error {
	c := p.conn
	number, reply := c.Ask()
	id := c.Unique() + "-" + strconv.FormatUint(number, 10)
	for first := p.acked; p.sent < end; {
		p.envelope.fill(&p.stream, &p.batch[p.sent], "")
		p.envelope.set(headerBatchID, id)
		p.envelope.set(headerBatchSequence, strconv.Itoa(p.sent-first+1))
		if p.sent == first {
			p.envelope.expect(p.expected(first))
		}
		if p.sent == end-1 {
			p.envelope.set(headerBatchCommit, "1")
			p.envelope.Reply = reply
		}
		if err := p.post(p.sent); err != nil {
			return err
		}
	}
	return p.committed(ctx, number, end)
}

// committed waits for the acknowledgement of the batch that ends at end.
func (p *publisher) committed(ctx context.Context, number uint64, end int) error {
	if err := p.conn.Outbox.Flush(); err != nil {
		return err
	}
	m, err := p.conn.Await(ctx, p.during, number)
	if err != nil {
		return err
	}
	seq, err := parseAck(m)
	switch {
	case err != nil:
		return errors.Join(errWhole, err)
	case seq != p.expected(end):
		return errMisplaced
	}
	p.advance(end)
	return nil
}
