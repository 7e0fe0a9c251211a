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
func (w *publishModes) text() string {
	if text := w.mode.Load(); text != nil {
		return *text
	}
	return ""
}

// choose notes how to send, and tells it if it is not what it was.
func (w *publishModes) choose(config *jetstream.StreamConfig) {
	w.stream.mode = w.options.modeOf(config)
	text := w.explain(config)
	if w.text() == text {
		return
	}
	w.mode.Store(&text)
	w.options.Notice("messages are sent " + text)
}

func (w *publishModes) explain(config *jetstream.StreamConfig) string {
	version := w.conn.NC.ConnectedServerVersion()
	switch w.options.modeOf(config) {
	case modeFast:
		return fmt.Sprintf("fast: server %s and stream %s allow batches", version, config.Name)
	case modeAtomic:
		return "atomic: the configuration asks for it"
	}
	switch {
	case w.options.Publish == PublishOrdered:
		return "ordered: the configuration asks for it"
	case w.options.Shared:
		return "ordered: on a shared stream only a message's own acknowledgement proves that it is stored"
	}
	return "ordered: " + w.obstacle(config)
}

// obstacle is why the stream takes no batches.
func (w *publishModes) obstacle(config *jetstream.StreamConfig) string {
	flag, release, level := w.options.batches()
	_, have := w.conn.NC.ConnectedServerJetStream()
	version := w.conn.NC.ConnectedServerVersion()
	if have < level {
		return fmt.Sprintf("server %s does not know such batches, which came with %s", version, release)
	}
	text := fmt.Sprintf("stream %s does not allow batches: set its %s", config.Name, flag)
	if w.refused != nil {
		text += fmt.Sprintf(" (the exporter tried: %s)", conn.Detail(w.refused))
	}
	return text
}

// allowed refuses a stream that does not take what the options ask for by name.
func (w *publishModes) allowed(config *jetstream.StreamConfig) error {
	asked := w.options.Publish == PublishFast || w.options.Publish == PublishAtomic
	if !asked || w.options.modeOf(config) != modeOrdered {
		return nil
	}
	return permanent("open stream %s: publish is %s, and %s: or let publish be auto",
		config.Name, w.options.Publish, w.obstacle(config))
}

// wants says whether a stream of ours should be changed, so that batches can be sent. While a cluster is renewed server
// by server, an older one that leads the stream would have to give it up.
func (w *publishModes) wants(config *jetstream.StreamConfig) bool {
	if w.options.Publish == PublishOrdered || w.options.Shared || w.options.modeOf(config) != modeOrdered {
		return false
	}
	_, _, level := w.options.batches()
	_, have := w.conn.NC.ConnectedServerJetStream()
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
func (w *publishModes) upgrade(ctx context.Context, info *jetstream.StreamInfo) (*jetstream.StreamInfo, error) {
	w.refused = nil
	if !w.wants(&info.Config) {
		return info, nil
	}
	var have struct {
		Config map[string]json.RawMessage `json:"config"`
	}
	if err := w.conn.Request(ctx, "STREAM.INFO."+info.Config.Name, nil, &have); err != nil {
		return nil, w.judge("look up", err)
	}
	flag, _, _ := w.options.batches()
	have.Config[flag] = json.RawMessage("true")
	body, err := json.Marshal(have.Config)
	if err != nil {
		return nil, err
	}
	if err := w.conn.Wish(ctx, "STREAM.UPDATE."+info.Config.Name, body, &struct{}{}); err != nil {
		w.refused = err
		return info, ctx.Err()
	}
	return w.lookup(ctx)
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

func (w *publishModes) allowBatches(config *jetstream.StreamConfig) {
	_, level := w.conn.NC.ConnectedServerJetStream()
	fast := w.options.Publish == PublishAuto || w.options.Publish == PublishFast
	config.AllowBatchPublish = level >= levelFast && fast && !w.options.Shared
	config.AllowAtomicPublish = level >= levelAtomic && w.options.Publish == PublishAtomic
}
