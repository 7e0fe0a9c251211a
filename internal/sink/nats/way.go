package nats

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/internal/sink/nats/conn"
)

// The values of Options.Publish.
const (
	PublishAuto    = "auto"    // fast where server and stream allow it, ordered elsewhere
	PublishFast    = "fast"    // fast ingest (ADR-50); needs server 2.14 and a stream with allow_batched
	PublishAtomic  = "atomic"  // atomic batches (ADR-50), for servers that sync always; needs 2.12 and allow_atomic
	PublishOrdered = "ordered" // one acknowledgement a message; any server
)

// The levels of the JetStream API (ADR-44) from which on a server knows batches.
const (
	levelAtomic = 2 // server 2.12
	levelFast   = 4 // server 2.14
)

// way is how messages are sent.
type way int

const (
	wayOrdered way = iota // one acknowledgement a message
	wayFast               // one for many, fast ingest
	wayAtomic             // one for a batch that is stored as a whole
)

// description is on the streams that we make, so that we know them again.
const description = "Changes of Kubernetes objects, written by kubecdc"

// wayOf is the best way that the stream allows. A client cannot see whether a server syncs always, so atomic batches
// are never chosen, only asked for. A shared stream has no expected sequences, and without them a batch's
// acknowledgement proves too little: a leader that could not propose a message goes on with the next.
func (o *Options) wayOf(config *jetstream.StreamConfig) way {
	switch {
	case o.Shared:
		return wayOrdered
	case config.AllowAtomicPublish && o.Publish == PublishAtomic:
		return wayAtomic
	case config.AllowBatchPublish && (o.Publish == PublishAuto || o.Publish == PublishFast):
		return wayFast
	}
	return wayOrdered
}

// Mode is how the open sink sends, and why: "fast: ...", "atomic: ..." or "ordered: ...". It is "" before the first
// Open. Any goroutine may call it.
func (s *Sink) Mode() string {
	if text := s.mode.Load(); text != nil {
		return *text
	}
	return ""
}

// choose notes how to send, and tells it if it is not what it was.
func (s *Sink) choose(config *jetstream.StreamConfig) {
	s.stream.way = s.options.wayOf(config)
	text := s.explain(config)
	if s.Mode() == text {
		return
	}
	s.mode.Store(&text)
	s.options.Notice("messages are sent " + text)
}

func (s *Sink) explain(config *jetstream.StreamConfig) string {
	version := s.conn.NC.ConnectedServerVersion()
	switch s.options.wayOf(config) {
	case wayFast:
		return fmt.Sprintf("fast: server %s and stream %s allow batches", version, config.Name)
	case wayAtomic:
		return "atomic: the configuration asks for it"
	}
	switch {
	case s.options.Publish == PublishOrdered:
		return "ordered: the configuration asks for it"
	case s.options.Shared:
		return "ordered: on a shared stream only a message's own acknowledgement proves that it is stored"
	}
	return "ordered: " + s.obstacle(config)
}

// obstacle is why the stream takes no batches.
func (s *Sink) obstacle(config *jetstream.StreamConfig) string {
	flag, release, level := s.batches()
	_, have := s.conn.NC.ConnectedServerJetStream()
	version := s.conn.NC.ConnectedServerVersion()
	if have < level {
		return fmt.Sprintf("server %s does not know such batches, which came with %s", version, release)
	}
	text := fmt.Sprintf("stream %s does not allow batches: set its %s", config.Name, flag)
	if s.refused != nil {
		text += fmt.Sprintf(" (the exporter tried: %s)", conn.Detail(s.refused))
	}
	return text
}

// batches returns the stream's flag for the batches that the options ask for, the server's release that has it, and
// the level of that release.
func (s *Sink) batches() (flag, release string, level int) {
	if s.options.Publish == PublishAtomic {
		return "allow_atomic", "2.12", levelAtomic
	}
	return "allow_batched", "2.14", levelFast
}

// allowed refuses a stream that does not take what the options ask for by name.
func (s *Sink) allowed(config *jetstream.StreamConfig) error {
	asked := s.options.Publish == PublishFast || s.options.Publish == PublishAtomic
	if !asked || s.options.wayOf(config) != wayOrdered {
		return nil
	}
	return permanent("open stream %s: publish is %s, and %s: or let publish be auto",
		config.Name, s.options.Publish, s.obstacle(config))
}

// wants says whether a stream of ours should be changed, so that batches can be sent. While a cluster is renewed server
// by server, an older one that leads the stream would have to give it up.
func (s *Sink) wants(config *jetstream.StreamConfig) bool {
	if s.options.Publish == PublishOrdered || s.options.Shared || s.options.wayOf(config) != wayOrdered {
		return false
	}
	_, _, level := s.batches()
	_, have := s.conn.NC.ConnectedServerJetStream()
	return min(have, leaderLevel(config)) >= level && s.ours(config)
}

// leaderLevel is the API level of the server that leads the stream (ADR-44), 0 for one that does not tell.
func leaderLevel(config *jetstream.StreamConfig) int {
	level, err := strconv.Atoi(config.Metadata["_nats.level"])
	if err != nil {
		return 0
	}
	return level
}

func (s *Sink) ours(config *jetstream.StreamConfig) bool { return config.Description == description }

// upgrade switches batches on in a stream that we made, and leaves all else in it as it is, also what this client does
// not know of. It returns the stream as it was where the server or the user's permissions are against it.
func (s *Sink) upgrade(ctx context.Context, info *jetstream.StreamInfo) (*jetstream.StreamInfo, error) {
	s.refused = nil
	if !s.wants(&info.Config) {
		return info, nil
	}
	var have struct {
		Config map[string]json.RawMessage `json:"config"`
	}
	if err := s.conn.Request(ctx, "STREAM.INFO."+info.Config.Name, nil, &have); err != nil {
		return nil, s.judge("look up", err)
	}
	flag, _, _ := s.batches()
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
