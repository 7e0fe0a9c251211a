package nats

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/nats/conn"
)

var _ sink.Sink = (*Sink)(nil)

// Sink writes into one stream. See sink.Sink for what its methods promise.
type Sink struct {
	options Options
	tuning  tuning
	conn    *conn.Conn // nil while the sink is not open
	stream  knownStream
	opened  bool      // an Open succeeded: what is missing now was there once, and is worth waiting for
	looked  time.Time // when the stream was compared with what it held
	left    left
	// of the connection that last saw a shared stream whole: nothing else tells of one that is shorter
	generation uint64
}

// left is how the last Open or Write left the stream.
type left struct {
	place mark           // after what is known to be stored
	doubt []sink.Message // what may be stored after that
}

// New checks the options and returns a sink that is not open.
func New(options Options) (*Sink, error) {
	if err := options.complete(); err != nil {
		return nil, fmt.Errorf("configure nats sink: %w", err)
	}
	return &Sink{options: options, tuning: defaultTuning()}, nil
}

func (s *Sink) connect(ctx context.Context) (*conn.Conn, error) {
	return conn.Dial(ctx, s.options.connection(&s.tuning))
}

// alive is the connection, or a new one if the end of a context hit the last Write when all of it was stored already.
func (s *Sink) alive(ctx context.Context) (*conn.Conn, error) {
	if s.conn.Usable() {
		return s.conn, nil
	}
	c, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	s.shut(ctx)
	s.conn, s.generation = c, math.MaxUint64 // none
	return c, nil
}

func (s *Sink) shut(ctx context.Context) {
	if s.conn != nil {
		s.conn.Close(ctx)
		s.conn = nil
	}
}

// Close is as in sink.Sink. Nothing is under way between two calls of Write, so there is nothing to flush.
func (s *Sink) Close(ctx context.Context) error {
	s.shut(ctx)
	return nil
}

// final returns the error that ends a call of Open or Write, or nil if another attempt may go better.
func (s *Sink) final(ctx context.Context, verb string, err error) error {
	_, permanent := errors.AsType[*sink.PermanentError](err)
	_, rejected := errors.AsType[*sink.RejectedError](err)
	_, late := errors.AsType[*sink.LateError](err)
	switch ended := ctx.Err(); {
	case permanent, rejected, late:
		return err
	case ended == nil:
		return nil
	}
	return sink.Ended(ctx, verb+" stream "+s.options.Stream, err)
}

func (s *Sink) lookup(ctx context.Context) (*jetstream.StreamInfo, error) {
	var info jetstream.StreamInfo
	if err := s.conn.Request(ctx, "STREAM.INFO."+s.options.Stream, nil, &info); err != nil {
		return nil, s.judge("look up", err)
	}
	if !ofLeader(info.Cluster) {
		return nil, fmt.Errorf("look up stream %s: %w", s.options.Stream, errLeaderless)
	}
	return &info, nil
}

// ofLeader says whether the stream's leader answered. While there is none, any replica answers, which may not have yet
// what was acknowledged. A replica names the leader that it has just got among the others.
func ofLeader(cluster *jetstream.ClusterInfo) bool {
	if cluster == nil {
		return true // a single server
	}
	return cluster.Leader != "" &&
		!slices.ContainsFunc(cluster.Replicas, func(peer *jetstream.PeerInfo) bool { return peer.Name == cluster.Leader })
}

// glance is how the stream is, nil where nobody says so or it is another one: what follows finds out.
func (s *Sink) glance(ctx context.Context) *jetstream.StreamInfo {
	if !s.conn.NC.IsConnected() || ctx.Err() != nil {
		return nil
	}
	defer s.conn.EndWith(ctx)()
	info, err := s.lookup(ctx)
	if err != nil || s.stream.place.endsBefore(info) != nil {
		return nil
	}
	return info
}

// judge finds the failures of a request about the stream that only a person can mend.
func (s *Sink) judge(verb string, err error) error {
	remedy := ""
	switch codeOf(err) {
	case jetstream.JSErrCodeJetStreamNotEnabledForAccount:
		return sink.Permanent("%s stream %s: JetStream is not enabled for the account of the sink's user: enable it for the account",
			verb, s.options.Stream)
	case codeMaxBytesRequired:
		remedy = "set a maximum size for the stream"
	case codeReplicas:
		remedy = "use 1 replica"
	case codeMaxStreams, codeNoLimits, codeMaxBytesExceeded:
		remedy = "raise the limits of the account"
	case codeStreamConfig:
		remedy = "create the stream by hand"
	}
	if remedy != "" {
		return sink.Permanent("%s stream %s: %w: %s", verb, s.options.Stream, conn.Terse{Err: err}, remedy)
	}
	// In a cluster it may be on the servers that are down, and what was there once comes back.
	missing := codeOf(err) == jetstream.JSErrCodeJetStreamNotEnabled || errors.Is(err, natsgo.ErrNoResponders)
	enabled, _ := s.conn.NC.ConnectedServerJetStream()
	if missing && !enabled && !s.opened && s.conn.NC.IsConnected() && s.conn.NC.ConnectedClusterName() == "" {
		return sink.Permanent("%s stream %s: JetStream is not enabled on the server: "+
			"start it with -js or with a jetstream {} block in its configuration", verb, s.options.Stream)
	}
	return err
}
