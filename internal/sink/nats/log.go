package nats

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/nats/conn"
)

// entry is what is stored at one sequence.
type entry struct {
	seq     uint64
	gone    bool // deleted, expired, or replaced
	subject string
	id      string // of the header, "" if there is none
	headers natsgo.Header
	value   []byte // empty where many are read at once
}

// concurrency is how many reads are under way at once: each answer holds a whole message.
const concurrency = 32

// ask reads what is stored at n sequences after the place. It asks the stream's leader: the replicas that answer direct
// gets may not have yet what was acknowledged, and what they do not have would be written twice.
func (s *Sink) ask(ctx context.Context, place uint64, n int) ([]entry, error) {
	c := s.conn
	generation, base := c.Generation(), c.Number+1
	for i := range n {
		body, _ := json.Marshal(map[string]uint64{"seq": place + 1 + uint64(i)}) // of a number it cannot fail
		_, reply := c.Ask()
		if err := c.PublishRequest(c.API+"STREAM.MSG.GET."+s.options.Stream, reply, body); err != nil {
			return nil, err
		}
	}
	entries := make([]entry, n)
	for missing := n; missing > 0; {
		m, err := c.Next(ctx, generation)
		if err != nil {
			return nil, err
		}
		number, ok := c.NumberOf(m)
		if !ok || number < base || number >= base+uint64(n) {
			continue // the answer to an attempt that was given up
		}
		var answer gotten
		m.Data = withoutValue(m.Data)
		e, err := answer.entry(conn.Parse(m, &answer))
		if err != nil {
			return nil, fmt.Errorf("read stream %s: %w", s.options.Stream, conn.Terse{Err: err})
		}
		e.seq = place + 1 + number - base // also if it is gone
		entries[number-base] = e
		missing--
	}
	return entries, nil
}

// each reads what is stored after one sequence up to another.
func (s *Sink) each(ctx context.Context, place, last uint64, do func(*entry) error) error {
	for place < last {
		entries, err := s.ask(ctx, place, int(min(concurrency, last-place)))
		if err != nil {
			return err
		}
		for i := range entries {
			if err := do(&entries[i]); err != nil {
				return err
			}
		}
		place += uint64(len(entries))
	}
	return nil
}

// between is what is stored after one sequence up to another.
func (s *Sink) between(ctx context.Context, place, last uint64) (entries []entry, err error) {
	err = s.each(ctx, place, last, func(e *entry) error {
		entries = append(entries, entry{seq: e.seq, gone: e.gone, subject: e.subject, id: e.id})
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

// entry is what is stored at the place, of the given error or none.
func (g *gotten) entry(err error) (entry, error) {
	switch {
	case codeOf(err) == jetstream.JSErrCodeMessageNotFound:
		return entry{gone: true}, nil
	case err != nil:
		return entry{}, err
	}
	e := entry{seq: g.Message.Seq, subject: g.Message.Subject, value: g.Message.Data}
	if headers, err := natsgo.DecodeHeadersMsg(g.Message.Headers); err == nil { // else it is nothing of ours
		e.id, e.headers = headers.Get(sink.HeaderID), headers
	}
	return e, nil
}

// get reads one message whole.
func (s *Sink) get(ctx context.Context, query map[string]any) (entry, error) {
	body, _ := json.Marshal(query) // of texts and numbers it cannot fail
	var answer gotten
	return answer.entry(s.conn.Request(ctx, "STREAM.MSG.GET."+s.options.Stream, body, &answer))
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

// asStored is the entry as those see it who judge records.
func (e *entry) asStored(stream string) *sink.Stored {
	return &sink.Stored{Place: placeIn(stream, e.seq), Destination: e.subject, Headers: headersOf(e.headers), Value: e.value}
}

func placeIn(stream string, seq uint64) string {
	return fmt.Sprintf("stream %s sequence %d", stream, seq)
}

func headersOf(header natsgo.Header) (all []sink.Header) {
	for name, values := range header {
		for _, value := range values {
			all = append(all, sink.Header{Name: name, Value: value})
		}
	}
	return all
}

// inspect refuses a stream that holds another cluster's records, on whatever subject. It looks at the first and the
// last message of all, and of each of our subjects.
func (s *Sink) inspect(ctx context.Context, info *jetstream.StreamInfo) error {
	if info.State.Msgs == 0 {
		return nil
	}
	for _, subject := range append(slices.Clone(s.options.Subjects), ">") {
		for _, query := range []map[string]any{{"last_by_subj": subject}, {"seq": 1, "next_by_subj": subject}} {
			e, err := s.get(ctx, query)
			if err == nil && !e.gone {
				err = s.refuse(&e)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// refuse is the verdict on a message that is in the place of ours: nil for one of ours and of nobody's.
func (s *Sink) refuse(e *entry) error {
	err := s.options.Judge(e.asStored(s.options.Stream))
	foreign, is := errors.AsType[*sink.ForeignError](err)
	switch {
	case !is:
		return err
	case foreign.Same:
		return sink.Permanent("open stream %s: %w", s.options.Stream, err)
	}
	return sink.Permanent("open stream %s: %w: give each cluster %s", s.options.Stream, err, s.options.remedy())
}

// delivered gives the ids of our messages after the sequence to found, and says how many messages there are gone.
func (s *Sink) delivered(ctx context.Context, after uint64, found func(id string)) (gone uint64, err error) {
	err = s.each(ctx, after, s.stream.place.Seq, func(e *entry) error {
		if e.gone {
			gone++
			return nil
		}
		ours, err := s.isOurs(ctx, e)
		if ours {
			found(e.id)
		}
		return err
	})
	return gone, err
}

// isOurs says whether the message after the mark is one that this sink has written. What nobody of us has written, and
// another cluster's, is an error.
func (s *Sink) isOurs(ctx context.Context, e *entry) (bool, error) {
	if _, notOurs := change.ParseID(e.id); notOurs != nil {
		return false, sink.Permanent("open stream %s: message %d on subject %q is not from kubecdc: "+
			"another writer publishes into the stream: give the exporter %s", s.options.Stream, e.seq, e.subject, s.options.remedy())
	}
	if s.options.Judge(e.asStored(s.options.Stream)) == nil {
		return coveredByAny(s.options.Subjects, e.subject), nil
	}
	// The whole message tells under which name another cluster has written it. One that is gone by now, such as a
	// replaced value of a bucket, is judged by its id.
	whole, err := s.get(ctx, map[string]any{"seq": e.seq})
	if err == nil && !whole.gone {
		e = &whole
	}
	return false, cmp.Or(err, s.refuse(e))
}
