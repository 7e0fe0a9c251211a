package nats

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"

	natsgo "github.com/nats-io/nats.go"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/nats/conn"
)

// entry is what is stored at one sequence.
type entry struct {
	seq     uint64
	subject string
	id      string // of the header, "" if there is none
	gone    bool   // deleted, expired, or taken by a consumer

	messageID string // of the header by which the server knows it

	operation string // of a bucket: what was done to the key, "" if it was put
}

// concurrency is how many reads are under way at once: each answer holds a whole message.
const concurrency = 32

// delivered gives the ids of our messages after the mark to found, and says how many messages there are gone.
func (s *Sink) delivered(ctx context.Context, want *mark, found func(id string)) (gone uint64, err error) {
	after, last := want.Seq, s.stream.place.Seq
	for after < last {
		n := int(min(concurrency, last-after))
		entries, err := s.read(ctx, after+1, n)
		if err != nil {
			return 0, err
		}
		for i := range entries {
			if entries[i].gone {
				gone++
				continue
			}
			ours, err := s.isOurs(ctx, &entries[i], want)
			if err != nil {
				return 0, err
			}
			if ours {
				found(entries[i].id)
			}
		}
		after += uint64(n)
	}
	return gone, nil
}

// read returns the entries at n sequences. It asks the stream's leader: the replicas that answer direct gets may not
// have yet what was acknowledged, and what they do not have would be written twice.
func (s *Sink) read(ctx context.Context, first uint64, n int) ([]entry, error) {
	c := s.conn
	generation, base := c.Generation(), c.Number+1
	subject := c.API + "STREAM.MSG.GET." + s.stream.name
	for i := range n {
		_, reply := c.Ask()
		request := strconv.AppendUint([]byte(`{"seq":`), first+uint64(i), 10)
		if err := c.NC.PublishRequest(subject, reply, append(request, '}')); err != nil {
			return nil, err
		}
	}
	entries := make([]entry, n)
	for missing := n; missing > 0; {
		m, err := c.Next(ctx, generation, c.Reply)
		if err != nil {
			return nil, err
		}
		number, ok := c.NumberOf(m)
		if !ok || number < base || number >= base+uint64(n) {
			continue // the answer to an attempt that was given up
		}
		i := number - base
		if entries[i], err = parseEntry(m); err != nil {
			return nil, fmt.Errorf("read message %d of stream %s: %w", first+i, s.stream.name, conn.Terse{Err: err})
		}
		entries[i].seq = first + i // also if it is gone
		missing--
	}
	return entries, nil
}

func parseEntry(m *natsgo.Msg) (entry, error) {
	var answer struct {
		Message struct {
			Seq     uint64 `json:"seq"`
			Subject string `json:"subject"`
			Headers []byte `json:"hdrs"`
		} `json:"message"`
	}
	m.Data = withoutValue(m.Data)
	switch err := conn.Parse(m, &answer); {
	case codeOf(err) == codeNoMessage:
		return entry{gone: true}, nil
	case err != nil:
		return entry{}, err
	}
	found := entry{seq: answer.Message.Seq, subject: answer.Message.Subject}
	if headers, err := natsgo.DecodeHeadersMsg(answer.Message.Headers); err == nil {
		found.id, found.operation, found.messageID = headers.Get(sink.HeaderID), headers.Get(headerOperation), headers.Get(headerMessageID)
	}
	return found, nil
}

// withoutValue cuts the message's value out of the answer, which is most of it and would cost most of the decoder's
// time. It is base64, so it ends at the next quote, and a quote within another string is escaped.
func withoutValue(answer []byte) []byte {
	const key = `"data":"`
	before, rest, found := bytes.Cut(answer, []byte(key))
	_, after, ends := bytes.Cut(rest, []byte(`"`))
	if !found || !ends {
		return answer
	}
	return slices.Concat(before, []byte(key+`"`), after)
}
