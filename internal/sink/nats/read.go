package nats

import (
	"bytes"
	"context"
	"encoding/json"
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

// read returns the entries at n sequences. It asks the stream's leader: the replicas that answer direct gets may not
// have yet what was acknowledged, and what they do not have would be written twice.
func (s *Sink) read(ctx context.Context, first uint64, n int) ([]entry, error) {
	c := s.conn
	generation, base := c.Generation(), c.Number+1
	subject := c.API + "STREAM.MSG.GET." + s.name
	for i := range n {
		_, reply := c.Ask()
		request := strconv.AppendUint([]byte(`{"seq":`), first+uint64(i), 10)
		if err := c.PublishRequest(subject, reply, append(request, '}')); err != nil {
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
			return nil, fmt.Errorf("read message %d of stream %s: %w", first+i, s.name, conn.Terse{Err: err})
		}
		entries[i].seq = first + i // also if it is gone
		missing--
	}
	return entries, nil
}

// between reads what is stored after one sequence up to another.
func (s *Sink) between(ctx context.Context, place, last uint64) ([]entry, error) {
	var entries []entry
	total := int(last - place)
	for len(entries) < total {
		n := min(concurrency, total-len(entries))
		more, err := s.read(ctx, place+uint64(len(entries))+1, n)
		if err != nil {
			return nil, err
		}
		entries = append(entries, more...)
	}
	return entries, nil
}

// get asks the stream's leader for one message.
func (s *Sink) get(ctx context.Context, query map[string]any) (entry, error) {
	body, err := json.Marshal(query)
	if err != nil {
		return entry{}, err
	}
	m, err := s.conn.Exchange(ctx, "STREAM.MSG.GET."+s.name, body)
	if err != nil {
		return entry{}, err
	}
	return parseEntry(m)
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

// asStored is the entry without its value.
func (e *entry) asStored(stream string) *sink.Stored {
	return &sink.Stored{
		Place: placeIn(stream, e.seq), Destination: e.subject, Headers: []sink.Header{{Name: sink.HeaderID, Value: e.id}}, Value: []byte{},
	}
}

func placeIn(stream string, seq uint64) string {
	return fmt.Sprintf("stream %s sequence %d", stream, seq)
}

// fetch reads one message whole, nil where there is none. A user who may not do that gets a *conn.DeniedError.
func (s *Sink) fetch(ctx context.Context, stream string, query map[string]any) (*sink.Stored, error) {
	body, err := json.Marshal(query)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Message struct {
			Seq     uint64 `json:"seq"`
			Subject string `json:"subject"`
			Headers []byte `json:"hdrs"`
			Data    []byte `json:"data"`
		} `json:"message"`
	}
	err = s.conn.Wish(ctx, "STREAM.MSG.GET."+stream, body, &answer)
	switch {
	case codeOf(err) == codeNoMessage:
		return nil, nil
	case err != nil:
		return nil, err
	}
	m := &answer.Message
	stored := &sink.Stored{Place: placeIn(stream, m.Seq), Destination: m.Subject, Value: m.Data}
	headers, err := natsgo.DecodeHeadersMsg(m.Headers)
	if err != nil {
		return stored, nil // nothing of ours
	}
	stored.Headers = headersOf(headers)
	return stored, nil
}

func headersOf(header natsgo.Header) (all []sink.Header) {
	for name, values := range header {
		for _, value := range values {
			all = append(all, sink.Header{Name: name, Value: value})
		}
	}
	return all
}
