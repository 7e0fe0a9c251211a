package nats

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/internal/sink/nats/conn"
)

// choose notes how to send, and tells it if it is not what it was.
func (s *Sink) choose(config *jetstream.StreamConfig) {
	s.stream.mode = s.options.modeOf(config)
	if how := s.explain(config); how != s.how {
		s.how = how
		s.options.Notice("messages are sent " + how)
	}
}

func (s *Sink) explain(config *jetstream.StreamConfig) string {
	switch mode := s.stream.mode; {
	case mode == PublishFast:
		return fmt.Sprintf("fast: server %s and stream %s allow batches", s.conn.NC.ConnectedServerVersion(), config.Name)
	case mode == s.options.Publish:
		return mode + ": the configuration asks for it"
	case s.options.Shared:
		return "ordered: on a shared stream only a message's own acknowledgement proves that it is stored"
	}
	return "ordered: " + s.obstacle(config)
}

// modeOf is the best mode that the stream allows. A client cannot see whether a server syncs always, so atomic batches
// are never chosen, only asked for. A shared stream has no expected sequences, and without them a batch's
// acknowledgement proves too little: a leader that could not propose a message goes on with the next.
func (o *Options) modeOf(config *jetstream.StreamConfig) string {
	switch {
	case o.Shared:
	case config.AllowAtomicPublish && o.Publish == PublishAtomic:
		return PublishAtomic
	case config.AllowBatchPublish && (o.Publish == PublishAuto || o.Publish == PublishFast):
		return PublishFast
	}
	return PublishOrdered
}

// batches returns the stream's flag for the batches that the options ask for, the server's release that has it, and
// the level of the JetStream API (ADR-44) of that release.
func (o *Options) batches() (flag, release string, level int) {
	if o.Publish == PublishAtomic {
		return "allow_atomic", "2.12", 2
	}
	return "allow_batched", "2.14", 4
}

// knowsBatches says whether batches can be sent to the server, where the stream allows it.
func (s *Sink) knowsBatches() bool {
	_, _, level := s.options.batches()
	_, have := s.conn.NC.ConnectedServerJetStream()
	return have >= level
}

// obstacle is why the stream takes no batches.
func (s *Sink) obstacle(config *jetstream.StreamConfig) string {
	flag, release, _ := s.options.batches()
	if !s.knowsBatches() {
		return fmt.Sprintf("server %s does not know such batches, which came with %s", s.conn.NC.ConnectedServerVersion(), release)
	}
	text := fmt.Sprintf("stream %s does not allow batches: set its %s", config.Name, flag)
	if s.refused != nil {
		text += fmt.Sprintf(" (the exporter tried: %s)", conn.Detail(s.refused))
	}
	return text
}

// allowed refuses a stream that does not take what the options ask for by name.
func (s *Sink) allowed(config *jetstream.StreamConfig) error {
	if s.options.Publish == PublishAuto || s.options.modeOf(config) == s.options.Publish {
		return nil
	}
	return permanent("open stream %s: publish is %s, and %s: or let publish be auto",
		config.Name, s.options.Publish, s.obstacle(config))
}

// wants says whether the stream should allow batches.
func (s *Sink) wants(config *jetstream.StreamConfig) bool {
	return s.options.Publish != PublishOrdered && !s.options.Shared && s.options.modeOf(config) == PublishOrdered && s.knowsBatches()
}

// description is on the streams that we make, so that we know them again.
const description = "Changes of Kubernetes objects, written by kubecdc"

// changes says whether a stream is ours, and should be changed to allow batches. While a cluster is renewed server by
// server, an older one that leads the stream would have to give it up. Oldest are those that do not tell their level.
func (s *Sink) changes(config *jetstream.StreamConfig) bool {
	_, _, level := s.options.batches()
	leader, err := strconv.Atoi(config.Metadata["_nats.level"])
	return s.wants(config) && config.Description == description && err == nil && leader >= level
}

// upgrade switches batches on in a stream that we made, and leaves all else in it as it is, also what this client does
// not know of. It returns the stream as it was where the server or the user's permissions are against it.
func (s *Sink) upgrade(ctx context.Context, info *jetstream.StreamInfo) (*jetstream.StreamInfo, error) {
	s.refused = nil
	if !s.changes(&info.Config) {
		return info, nil
	}
	var have struct {
		Config map[string]json.RawMessage `json:"config"`
	}
	if err := s.conn.Request(ctx, "STREAM.INFO."+info.Config.Name, nil, &have); err != nil {
		return nil, s.judge("look up", err)
	}
	flag, _, _ := s.options.batches()
	have.Config[flag] = json.RawMessage("true")
	body, err := json.Marshal(have.Config)
	if err != nil {
		return nil, err
	}
	if err := s.conn.Wish(ctx, "STREAM.UPDATE."+info.Config.Name, body, &struct{}{}); err != nil {
		s.refused = err
		return info, ctx.Err()
	}
	return s.lookup(ctx)
}
