package nats

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/internal/sink/nats/conn"
)

// publishModes chooses in which mode messages are sent.
type publishModes struct {
	*session
	refused error // why the stream could not be changed to take batches
	mode    atomic.Pointer[string]
}

// text is how the open sink sends, and why; "" before the first Open.
func (p *publishModes) text() string {
	if text := p.mode.Load(); text != nil {
		return *text
	}
	return ""
}

// choose notes how to send, and tells it if it is not what it was.
func (p *publishModes) choose(config *jetstream.StreamConfig) {
	p.stream.mode = p.options.modeOf(config)
	text := p.explain(config)
	if p.text() == text {
		return
	}
	p.mode.Store(&text)
	p.options.Notice("messages are sent " + text)
}

func (p *publishModes) explain(config *jetstream.StreamConfig) string {
	version := p.conn.NC.ConnectedServerVersion()
	switch p.options.modeOf(config) {
	case modeFast:
		return fmt.Sprintf("fast: server %s and stream %s allow batches", version, config.Name)
	case modeAtomic:
		return "atomic: the configuration asks for it"
	}
	switch {
	case p.options.Publish == PublishOrdered:
		return "ordered: the configuration asks for it"
	case p.options.Shared:
		return "ordered: on a shared stream only a message's own acknowledgement proves that it is stored"
	}
	return "ordered: " + p.obstacle(config)
}

// obstacle is why the stream takes no batches.
func (p *publishModes) obstacle(config *jetstream.StreamConfig) string {
	flag, release, level := p.options.batches()
	_, have := p.conn.NC.ConnectedServerJetStream()
	version := p.conn.NC.ConnectedServerVersion()
	if have < level {
		return fmt.Sprintf("server %s does not know such batches, which came with %s", version, release)
	}
	text := fmt.Sprintf("stream %s does not allow batches: set its %s", config.Name, flag)
	if p.refused != nil {
		text += fmt.Sprintf(" (the exporter tried: %s)", conn.Detail(p.refused))
	}
	return text
}

// allowed refuses a stream that does not take what the options ask for by name.
func (p *publishModes) allowed(config *jetstream.StreamConfig) error {
	asked := p.options.Publish == PublishFast || p.options.Publish == PublishAtomic
	if !asked || p.options.modeOf(config) != modeOrdered {
		return nil
	}
	return permanent("open stream %s: publish is %s, and %s: or let publish be auto",
		config.Name, p.options.Publish, p.obstacle(config))
}

// wants says whether a stream of ours should be changed, so that batches can be sent. While a cluster is renewed server
// by server, an older one that leads the stream would have to give it up.
func (p *publishModes) wants(config *jetstream.StreamConfig) bool {
	if p.options.Publish == PublishOrdered || p.options.Shared || p.options.modeOf(config) != modeOrdered {
		return false
	}
	_, _, level := p.options.batches()
	_, have := p.conn.NC.ConnectedServerJetStream()
	return min(have, leaderLevel(config)) >= level && config.Description == description
}

// leaderLevel is the API level of the server that leads the stream (ADR-44), 0 for one that does not tell.
func leaderLevel(config *jetstream.StreamConfig) int {
	level, err := strconv.Atoi(config.Metadata["_nats.level"])
	if err != nil {
		return 0
	}
	return level
}

// description is on the streams that we make, so that we know them again.
const description = "Changes of Kubernetes objects, written by kubecdc"

// upgrade switches batches on in a stream that we made, and leaves all else in it as it is, also what this client does
// not know of. It returns the stream as it was where the server or the user's permissions are against it.
func (p *publishModes) upgrade(ctx context.Context, info *jetstream.StreamInfo) (*jetstream.StreamInfo, error) {
	p.refused = nil
	if !p.wants(&info.Config) {
		return info, nil
	}
	var have struct {
		Config map[string]json.RawMessage `json:"config"`
	}
	if err := p.conn.Request(ctx, "STREAM.INFO."+info.Config.Name, nil, &have); err != nil {
		return nil, p.judge("look up", err)
	}
	flag, _, _ := p.options.batches()
	have.Config[flag] = json.RawMessage("true")
	body, err := json.Marshal(have.Config)
	if err != nil {
		return nil, err
	}
	if err := p.conn.Wish(ctx, "STREAM.UPDATE."+info.Config.Name, body, &struct{}{}); err != nil {
		p.refused = err
		return info, ctx.Err()
	}
	return p.lookup(ctx)
}

// modeOf is the best mode that the stream allows. A client cannot see whether a server syncs always, so atomic batches
// are never chosen, only asked for. A shared stream has no expected sequences, and without them a batch's
// acknowledgement proves too little: a leader that could not propose a message goes on with the next.
func (o *Options) modeOf(config *jetstream.StreamConfig) publishMode {
	switch {
	case o.Shared:
		return modeOrdered
	case config.AllowAtomicPublish && o.Publish == PublishAtomic:
		return modeAtomic
	case config.AllowBatchPublish && (o.Publish == PublishAuto || o.Publish == PublishFast):
		return modeFast
	}
	return modeOrdered
}

// batches returns the stream's flag for the batches that the options ask for, the server's release that has it, and
// the level of that release.
func (o *Options) batches() (flag, release string, level int) {
	if o.Publish == PublishAtomic {
		return "allow_atomic", "2.12", levelAtomic
	}
	return "allow_batched", "2.14", levelFast
}

func (p *publishModes) allowBatches(config *jetstream.StreamConfig) {
	_, level := p.conn.NC.ConnectedServerJetStream()
	fast := p.options.Publish == PublishAuto || p.options.Publish == PublishFast
	config.AllowBatchPublish = level >= levelFast && fast && !p.options.Shared
	config.AllowAtomicPublish = level >= levelAtomic && p.options.Publish == PublishAtomic
}
