package nats

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/nats/conn"
)

// locate finds which stream is ours: the one of the options, or where that is not there one of the name that it had by
// default before.
func (s *Sink) locate(ctx context.Context, want *mark) error {
	s.name = s.options.Stream
	before := s.options.Formerly
	if before == "" || want != nil && want.Stream == s.options.Stream {
		return nil
	}
	marked := want != nil && want.Stream == before
	if !marked {
		if _, err := s.lookupIfAllowed(ctx, s.options.Stream); codeOf(err) != codeNotFound {
			return nil // it is there, or what follows says what is wrong
		}
	}
	info, err := s.lookupIfAllowed(ctx, before)
	var denied *conn.DeniedError
	switch {
	case codeOf(err) == codeNotFound, errors.As(err, &denied):
		return nil
	case err != nil:
		return err
	case !marked:
		if ours, err := s.mayGoOn(ctx, info); err != nil || !ours {
			return err
		}
	}
	s.name = before
	s.goesOn.Do(func() {
		s.options.Notice(fmt.Sprintf("go on in stream %s, which was the default before; a new one would be %s", before, s.options.Stream))
	})
	return nil
}

// lookupIfAllowed asks for a stream that may be none of ours.
func (s *Sink) lookupIfAllowed(ctx context.Context, name string) (*jetstream.StreamInfo, error) {
	var info jetstream.StreamInfo
	return &info, s.conn.Wish(ctx, "STREAM.INFO."+name, nil, &info)
}

// mayGoOn says whether a stream of the former name takes our subjects, and holds our records last, or nothing.
func (s *Sink) mayGoOn(ctx context.Context, info *jetstream.StreamInfo) (bool, error) {
	for _, subject := range s.options.Subjects {
		if !coveredByAny(info.Config.Subjects, subject) {
			return false, nil
		}
	}
	last, err := s.fetch(ctx, info.Config.Name, map[string]any{"last_by_subj": ">"})
	if err != nil || last == nil {
		return last == nil && err == nil, ignoreDenied(err)
	}
	_, notOurs := change.ParseID(last.Header(sink.HeaderID))
	return notOurs == nil && s.options.Judge(last) == nil, nil
}

// inspect refuses a stream that holds another cluster's records where ours would go. Of a stream that is not shared,
// all of it is that place.
func (s *Sink) inspect(ctx context.Context, info *jetstream.StreamInfo) error {
	if info.State.Msgs == 0 {
		return nil
	}
	var queries []map[string]any
	for _, subject := range s.options.Subjects {
		queries = append(queries, map[string]any{"last_by_subj": subject}, map[string]any{"seq": 1, "next_by_subj": subject})
	}
	if !s.options.Shared {
		queries = append(queries, map[string]any{"last_by_subj": ">"}, map[string]any{"seq": 1, "next_by_subj": ">"})
	}
	for _, query := range queries {
		stored, err := s.fetch(ctx, s.name, query)
		if err == nil && stored != nil {
			err = s.refuse(stored)
		}
		if err := ignoreDenied(err); err != nil {
			return err
		}
	}
	return nil
}

// refuse is the verdict on a message that is in the place of ours: nil for one of ours and of nobody's. Two clusters
// may share a stream under two names.
func (s *Sink) refuse(stored *sink.Stored) error {
	err := s.options.Judge(stored)
	var foreign *sink.ForeignError
	switch {
	case !errors.As(err, &foreign):
		return err
	case foreign.Same:
		return permanent("open stream %s: %w", s.name, err)
	case s.options.Shared:
		return nil
	case s.options.KV != "":
		return permanent("open bucket %s: %w: give each cluster a bucket of its own with the key kv", s.options.KV, err)
	}
	return permanent("open stream %s: %w: give each cluster a stream of its own with the key stream, or say for both that it is shared, with the key shared",
		s.name, err)
}

// isOurs says whether the message behind the mark is one that this sink has written. What nobody of us has written, and
// another cluster's in a stream that is not shared, is an error.
func (s *Sink) isOurs(ctx context.Context, e *entry, want *mark) (bool, error) {
	_, notOurs := change.ParseID(e.id)
	switch {
	case notOurs != nil && s.stream.shared:
		return false, nil
	case notOurs != nil:
		return false, permanent("open stream %s: message %d on subject %q is not from kubecdc: "+
			"another writer publishes into the stream: give the exporter a stream of its own, or say that it is shared",
			s.stream.name, e.seq, e.subject)
	case s.stream.shared && want.Writer != "":
		return e.messageID == messageID(want.Writer, e.subject, e.id), nil
	case s.stream.shared && e.messageID != e.id && e.messageID != messageID(s.stream.place.Writer, e.subject, e.id):
		return false, nil // not even one of an older version
	}
	if err := s.options.Judge(e.asStored(s.stream.name)); err != nil {
		return false, s.convict(ctx, e)
	}
	return coveredByAny(s.options.Subjects, e.subject), nil
}

// convict reads the whole message, which tells under which name another cluster has written it. One that is gone by
// now, such as a replaced value of a bucket, is judged by its id.
func (s *Sink) convict(ctx context.Context, e *entry) error {
	if s.stream.shared {
		return nil
	}
	stored, err := s.fetch(ctx, s.stream.name, map[string]any{"seq": e.seq})
	if err = ignoreDenied(err); err != nil {
		return err
	}
	if stored == nil {
		stored = e.asStored(s.stream.name)
	}
	return s.refuse(stored)
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

// writer is a hash of who writes to a shared stream, and since when; "" where the stream is not shared.
func (s *Sink) writer(life string) string {
	if !s.options.Shared {
		return ""
	}
	return shortHash(s.options.Writer, life)
}

// messageID is what the server knows a message of a shared stream by. JetStream takes a message of the same id for a
// repetition, on whatever subject and by whomever.
func messageID(writer, subject, id string) string { return shortHash(writer, subject) + "/" + id }

func shortHash(parts ...string) string {
	hash := sha256.New()
	for _, part := range parts {
		hash.Write([]byte(part))
		hash.Write([]byte{0})
	}
	return base64.RawURLEncoding.EncodeToString(hash.Sum(nil)[:hashedBytes])
}

// hashedBytes of a hash tell writers and subjects apart; in base64 they are a third more.
const hashedBytes = 12

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
	for name, values := range headers {
		for _, value := range values {
			stored.Headers = append(stored.Headers, sink.Header{Name: name, Value: value})
		}
	}
	return stored, nil
}

// ignoreDenied is for what may stay unknown.
func ignoreDenied(err error) error {
	var denied *conn.DeniedError
	if errors.As(err, &denied) {
		return nil
	}
	return err
}
