package nats

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/nats/conn"
)

// How long Check waits at most: for a connection, for one answer, and for answers of servers that elect their leader.
const (
	checkTime    = 5 * time.Second
	answerTime   = 2 * time.Second
	electionTime = 20 * time.Second
)

// Check logs in, looks whether the stream can be written to, or made where it is missing, and changes nothing.
// It is for a sink that is not open. The note says which objects the server will not take.
func (s *Sink) Check(ctx context.Context) (note string, err error) {
	bounded, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	c, err := s.connect(bounded)
	if err != nil {
		return "", s.checkError(ctx, err)
	}
	s.conn = c
	defer s.shut(ctx)
	config, err := s.checkPatiently(ctx)
	if err != nil {
		return "", s.checkError(ctx, err)
	}
	most := s.conn.NC.MaxPayload()
	if limit := int64(config.MaxMsgSize); limit > 0 {
		most = min(most, limit)
	}
	var notes []string
	if last, isOurs := s.last(ctx); last != nil && !isOurs { // what keeps the sink from reading it is told already
		notes = append(notes, fmt.Sprintf("the last message of stream %s, on subject %q, is not from kubecdc: another writer stops the sink: "+
			"give the exporter %s", s.options.Stream, last.subject, s.options.remedy()))
	}
	notes = append(notes, s.notes(config)...)
	if most < sink.LargestObject && !s.options.Whole {
		notes = append(notes, fmt.Sprintf("the largest message is %d KiB, and objects can have %d KiB: a gap record will stand for one that is larger; "+
			"raise max_payload of the server and max_msg_size of the stream to take all", most>>10, sink.LargestObject>>10))
	}
	return strings.Join(notes, "; "), nil
}

// checkPatiently asks again while no server answers for JetStream, as in a cluster that has just started.
func (s *Sink) checkPatiently(ctx context.Context) (config *jetstream.StreamConfig, err error) {
	over, cancel := context.WithTimeout(ctx, electionTime)
	defer cancel()
	for wait := newBackOff(); ; {
		bounded, end := context.WithTimeout(over, answerTime)
		config, err = s.checkStream(bounded)
		end()
		if err == nil || !early(err) || over.Err() != nil {
			return config, err
		}
		sink.Pause(over, wait.NextBackOff(), nil)
	}
}

// checkStream returns the stream as it is, or as it would be made.
func (s *Sink) checkStream(ctx context.Context) (*jetstream.StreamConfig, error) {
	info, err := s.lookup(ctx)
	if codeOf(err) == jetstream.JSErrCodeStreamNotFound {
		return s.newStream(), s.creatable(ctx)
	}
	if err != nil {
		return nil, err
	}
	if err := s.options.suitable(&info.Config); err != nil {
		return nil, err
	}
	return &info.Config, s.inspect(ctx, info)
}

// creatable finds what would keep the stream from being made. Whether the user may make it, only making it tells.
func (s *Sink) creatable(ctx context.Context) error {
	if owner, err := s.owner(ctx); err != nil {
		return s.judge("look for the subjects of", err)
	} else if owner != "" {
		return s.overlap(owner)
	}
	if s.options.Replicas > 1 && s.conn.NC.ConnectedClusterName() == "" {
		return sink.Permanent("create stream %s: %d replicas need a cluster of servers: use 1 replica", s.options.Stream, s.options.Replicas)
	}
	return nil
}

// checkError explains what Open would only try again.
func (s *Sink) checkError(ctx context.Context, err error) error {
	_, permanent := errors.AsType[*sink.PermanentError](err)
	_, explained := errors.AsType[*conn.UnreachableError](err)
	var network net.Error
	switch {
	case permanent, explained, ctx.Err() != nil:
		return err
	case errors.As(err, &network) && network.Timeout(), errors.Is(err, context.DeadlineExceeded), errors.Is(err, conn.ErrSilent):
		return fmt.Errorf("connect to %s: no answer in time: check the URL, and that the server is up", s.options.servers())
	case errors.Is(err, natsgo.ErrNoResponders):
		return fmt.Errorf("look up stream %s: no server of the cluster answers for JetStream: check that JetStream is enabled and up", s.options.Stream)
	}
	return fmt.Errorf("%w: check the URL, and that the server is up", err)
}

// notes are what a person may want to know of a stream that is suitable.
func (s *Sink) notes(config *jetstream.StreamConfig) (notes []string) {
	limit := ""
	switch {
	case config.MaxBytes > 0:
		limit = fmt.Sprintf("%d bytes", config.MaxBytes)
	case config.MaxMsgs > 0:
		limit = fmt.Sprintf("%d messages", config.MaxMsgs)
	case config.MaxAge > 0:
		limit = "the age of " + config.MaxAge.String()
	}
	switch {
	case s.options.KV != "":
		notes = bucketNotes(config)
	case limit != "" && config.Discard == jetstream.DiscardOld:
		notes = append(notes, fmt.Sprintf("stream %s drops its oldest messages at %s (discard old): a consumer that is slower loses them without a word",
			config.Name, limit))
	}
	if config.Storage == jetstream.MemoryStorage {
		notes = append(notes, fmt.Sprintf("stream %s is in memory: a restart of its servers loses it, and all objects are sent again", config.Name))
	}
	return notes
}

// CheckMark says what a sink of which nothing is saved does to a stream that has messages of kubecdc. It changes
// nothing. It is for a sink that is not open.
func (s *Sink) CheckMark(ctx context.Context, at sink.Mark) (note string, err error) {
	if at != "" {
		return "", nil
	}
	bounded, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	if s.conn, err = s.connect(bounded); err != nil {
		return "", s.checkError(ctx, err)
	}
	defer s.shut(ctx)
	if _, isOurs := s.last(bounded); !isOurs {
		return "", nil
	}
	return fmt.Sprintf("stream %s has messages of kubecdc of which this state knows nothing: with it all objects are sent again, behind them, "+
		"and an exporter that still writes there is stopped until its own next start", s.options.Stream), nil
}

// last is the last message of the stream, nil where there is none to be read, and whether kubecdc has written it. It
// does not look at the log of a state.
func (s *Sink) last(ctx context.Context) (last *entry, isOurs bool) {
	if s.options.Whole {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	found, err := s.get(ctx, map[string]any{"last_by_subj": ">"})
	if err != nil || found.gone {
		return nil, false
	}
	_, notOurs := change.ParseID(found.id)
	return &found, notOurs == nil
}
