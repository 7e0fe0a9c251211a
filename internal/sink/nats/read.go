package nats

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

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

// ask puts n queries to the stream's leader: the replicas that answer direct gets may not have yet what was
// acknowledged, and what they do not have would be written twice.
func (s *Sink) ask(ctx context.Context, n int, query func(i int) any) ([]entry, error) {
	c := s.conn
	generation, base := c.Generation(), c.Number+1
	for i := range n {
		body, err := json.Marshal(query(i))
		if err != nil {
			return nil, err
		}
		_, reply := c.Ask()
		if err := c.PublishRequest(c.API+"STREAM.MSG.GET."+s.options.Stream, reply, body); err != nil {
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
		if entries[number-base], err = parseEntry(m); err != nil {
			return nil, fmt.Errorf("read stream %s: %w", s.options.Stream, conn.Terse{Err: err})
		}
		missing--
	}
	return entries, nil
}

// get reads one message.
func (s *Sink) get(ctx context.Context, query map[string]any) (entry, error) {
	entries, err := s.ask(ctx, 1, func(int) any { return query })
	if err != nil {
		return entry{}, err
	}
	return entries[0], nil
}

// each reads what is stored after one sequence up to another.
func (s *Sink) each(ctx context.Context, place, last uint64, do func(*entry) error) error {
	for place < last {
		entries, err := s.ask(ctx, int(min(concurrency, last-place)), func(i int) any {
			return map[string]uint64{"seq": place + 1 + uint64(i)}
		})
		if err != nil {
			return err
		}
		for i := range entries {
			place++
			entries[i].seq = place // also if it is gone
			if err := do(&entries[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// between is what is stored after one sequence up to another.
func (s *Sink) between(ctx context.Context, place, last uint64) (entries []entry, err error) {
	err = s.each(ctx, place, last, func(e *entry) error {
		entries = append(entries, *e)
		return nil
	})
	return entries, err
}

// gotten is the server's answer to a query.
type gotten struct {
	Message struct {
		Seq     uint64 `json:"seq"`
		Subject string `json:"subject"`
		Headers []byte `json:"hdrs"`
		Data    []byte `json:"data"`
	} `json:"message"`
}

func parseEntry(m *natsgo.Msg) (entry, error) {
	var answer gotten
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

// fetch reads one message whole, nil where there is none.
func (s *Sink) fetch(ctx context.Context, query map[string]any) (*sink.Stored, error) {
	body, err := json.Marshal(query)
	if err != nil {
		return nil, err
	}
	var answer gotten
	err = s.conn.Request(ctx, "STREAM.MSG.GET."+s.options.Stream, body, &answer)
	switch {
	case codeOf(err) == codeNoMessage:
		return nil, nil
	case err != nil:
		return nil, err
	}
	m := &answer.Message
	stored := &sink.Stored{Place: placeIn(s.options.Stream, m.Seq), Destination: m.Subject, Value: m.Data}
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
