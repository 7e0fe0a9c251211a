package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/internal/sink/nats/conn"
)

// stream is the stream as this sink knows it.
type stream struct {
	name       string
	place      mark // after the last message that is known to be stored
	subjects   []string
	keys       string // of a bucket: what its subjects start with
	shared     bool   // others write to it, too
	maxMessage int    // bytes of headers and value; negative is no limit
	maxSubject int    // characters
	way        way
	confirmed  bool // a message of ours was stored since the sink was opened
}

func newStream(info *jetstream.StreamInfo) stream {
	s := stream{
		name:  info.Config.Name,
		place: mark{Stream: info.Config.Name, Created: info.Created, Seq: info.State.LastSeq},
	}
	s.renew(&info.Config)
	return s
}

// renew takes what a person can change meanwhile.
func (s *stream) renew(config *jetstream.StreamConfig) {
	s.subjects, s.maxMessage = config.Subjects, int(config.MaxMsgSize)
}

// ensure returns the stream, which it makes if there is none.
func (s *Sink) ensure(ctx context.Context) (*jetstream.StreamInfo, error) {
	info, err := s.lookup(ctx)
	if codeOf(err) == codeNotFound {
		info, err = s.create(ctx)
	}
	if err != nil {
		return nil, err
	}
	if err := s.suitable(&info.Config); err != nil {
		return nil, err
	}
	if info, err = s.upgrade(ctx, info); err != nil {
		return nil, err
	}
	return info, s.allowed(&info.Config)
}

func (s *Sink) lookup(ctx context.Context) (*jetstream.StreamInfo, error) {
	var info jetstream.StreamInfo
	if err := s.conn.Request(ctx, "STREAM.INFO."+s.name, nil, &info); err != nil {
		return nil, s.judge("look up", err)
	}
	if !ofLeader(info.Cluster) {
		return nil, fmt.Errorf("look up stream %s: %w", s.name, errLeaderless)
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

func (s *Sink) create(ctx context.Context) (*jetstream.StreamInfo, error) {
	config, err := json.Marshal(s.config())
	if err != nil {
		return nil, err
	}
	var info jetstream.StreamInfo
	err = s.conn.Request(ctx, "STREAM.CREATE."+s.name, config, &info)
	switch codeOf(err) {
	case codeNameInUse: // somebody was quicker
		return s.lookup(ctx)
	case codeOverlap:
		return nil, s.overlap(ctx)
	}
	if err != nil {
		return nil, s.judge("create", err)
	}
	return &info, nil
}

// config is the stream that we make. Its limits are retention, as Kafka's are: at the limit the oldest messages go,
// unless the user prefers that we wait, which stops every change until somebody makes room. No message has an id, so
// the window for duplicates is as short as the server allows.
func (s *Sink) config() jetstream.StreamConfig {
	if s.options.KV != "" {
		return s.bucketConfig()
	}
	config := jetstream.StreamConfig{
		Name:        s.name,
		Description: description,
		Subjects:    s.options.Subjects,
		Retention:   jetstream.LimitsPolicy,
		Storage:     s.options.storage(),
		Discard:     jetstream.DiscardOld,
		Replicas:    s.options.Replicas,
		MaxAge:      s.options.MaxAge,
		MaxBytes:    -1,
		MaxMsgs:     -1,
		Duplicates:  s.options.window(),
		AllowDirect: true,
	}
	if s.options.MaxBytes > 0 {
		config.MaxBytes = s.options.MaxBytes
	}
	if s.options.DiscardNew {
		config.Discard = jetstream.DiscardNew
	}
	s.allowBatches(&config)
	return config
}

func (s *Sink) allowBatches(config *jetstream.StreamConfig) {
	_, level := s.conn.NC.ConnectedServerJetStream()
	fast := s.options.Publish == PublishAuto || s.options.Publish == PublishFast
	config.AllowBatchPublish = level >= levelFast && fast && !s.options.Shared
	config.AllowAtomicPublish = level >= levelAtomic && s.options.Publish == PublishAtomic
}

// overlap names the stream that has our subjects.
func (s *Sink) overlap(ctx context.Context) error {
	owner := "another stream"
	for _, subject := range s.options.Subjects {
		if name, err := s.owner(ctx, subject); err == nil && name != "" {
			owner = "stream " + name
			break
		}
	}
	return permanent("create stream %s: %s takes subjects of %q already: name other subjects, or write to that stream",
		s.name, owner, s.options.Subjects)
}

// owner is the name of a stream that takes the subject, "" if there is none.
func (s *Sink) owner(ctx context.Context, subject string) (string, error) {
	query, err := json.Marshal(map[string]string{"subject": subject})
	if err != nil {
		return "", err
	}
	var names struct {
		Streams []string `json:"streams"`
	}
	if err := s.conn.Request(ctx, "STREAM.NAMES", query, &names); err != nil || len(names.Streams) == 0 {
		return "", err
	}
	return names.Streams[0], nil
}

// judge finds the failures of a request about the stream that only a person can mend.
func (s *Sink) judge(verb string, err error) error {
	switch codeOf(err) {
	case codeNotEnabledAccount:
		return permanent("%s stream %s: JetStream is not enabled for the account of the sink's user: enable it for the account",
			verb, s.name)
	case codeMaxBytesRequired:
		return permanent("%s stream %s: %w: set a maximum size for the stream", verb, s.name, conn.Terse{Err: err})
	case codeReplicas:
		return permanent("%s stream %s: %w: use 1 replica", verb, s.name, conn.Terse{Err: err})
	case codeMaxStreams, codeNoLimits, codeMaxBytesExceeded:
		return permanent("%s stream %s: %w: raise the limits of the account", verb, s.name, conn.Terse{Err: err})
	case codeStreamConfig:
		return permanent("%s stream %s: %w: create the stream by hand", verb, s.name, conn.Terse{Err: err})
	}
	if s.withoutJetStream(err) {
		return permanent("%s stream %s: JetStream is not enabled on the server: "+
			"start it with -js or with a jetstream {} block in its configuration", verb, s.name)
	}
	return err
}

// withoutJetStream says whether there is no JetStream to wait for. In a cluster it may be on the servers that are down,
// and what was there once comes back.
func (s *Sink) withoutJetStream(err error) bool {
	missing := codeOf(err) == codeNotEnabled || errors.Is(err, natsgo.ErrNoResponders)
	enabled, _ := s.conn.NC.ConnectedServerJetStream()
	return missing && !enabled && !s.opened && s.conn.NC.IsConnected() && s.conn.NC.ConnectedClusterName() == ""
}
