package nats

import (
	"context"
	"encoding/json"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// manager makes sure that the stream is there, and that it can be a log of ours.
type manager struct {
	*session
	modes *publishModes
}

// ensure returns the stream, which it makes if there is none.
func (m *manager) ensure(ctx context.Context) (*jetstream.StreamInfo, error) {
	info, err := m.lookup(ctx)
	if codeOf(err) == codeNotFound {
		info, err = m.create(ctx)
	}
	if err != nil {
		return nil, err
	}
	if err := m.options.suitable(&info.Config); err != nil {
		return nil, err
	}
	if info, err = m.modes.upgrade(ctx, info); err != nil {
		return nil, err
	}
	return info, m.modes.allowed(&info.Config)
}

func (m *manager) create(ctx context.Context) (*jetstream.StreamInfo, error) {
	config, err := json.Marshal(m.config())
	if err != nil {
		return nil, err
	}
	var info jetstream.StreamInfo
	err = m.conn.Request(ctx, "STREAM.CREATE."+m.name, config, &info)
	switch codeOf(err) {
	case codeNameInUse: // somebody was quicker
		return m.lookup(ctx)
	case codeOverlap:
		return nil, m.overlap(ctx)
	}
	if err != nil {
		return nil, m.judge("create", err)
	}
	return &info, nil
}

// config is the stream that we make. Its limits are retention, as Kafka's are: at the limit the oldest messages go,
// unless the user prefers that we wait, which stops every change until somebody makes room. No message has an id, so
// the window for duplicates is as short as the server allows.
func (m *manager) config() jetstream.StreamConfig {
	if m.options.KV != "" {
		return m.bucketConfig()
	}
	config := jetstream.StreamConfig{
		Name:        m.name,
		Description: description,
		Subjects:    m.options.Subjects,
		Retention:   jetstream.LimitsPolicy,
		Storage:     m.options.storage(),
		Discard:     jetstream.DiscardOld,
		Replicas:    m.options.Replicas,
		MaxAge:      m.options.MaxAge,
		MaxBytes:    -1,
		MaxMsgs:     -1,
		Duplicates:  m.options.window(),
		AllowDirect: true,
	}
	if m.options.MaxBytes > 0 {
		config.MaxBytes = m.options.MaxBytes
	}
	if m.options.DiscardNew {
		config.Discard = jetstream.DiscardNew
	}
	m.modes.allowBatches(&config)
	return config
}

// bucketConfig is the stream of a new bucket, as clients make it, but for the window, since no message has an id. A
// bucket that is full waits for room: a state that lacks its oldest objects would be none.
func (m *manager) bucketConfig() jetstream.StreamConfig {
	config := jetstream.StreamConfig{
		Name:              m.options.Stream,
		Description:       description,
		Subjects:          m.options.Subjects,
		MaxMsgsPerSubject: int64(m.options.History),
		MaxBytes:          -1,
		MaxMsgs:           -1,
		MaxMsgSize:        -1,
		MaxConsumers:      -1,
		Storage:           m.options.storage(),
		Replicas:          m.options.Replicas,
		Discard:           jetstream.DiscardNew,
		AllowRollup:       true,
		DenyDelete:        true,
		AllowDirect:       true,
		Duplicates:        100 * time.Millisecond,
	}
	if m.options.MaxBytes > 0 {
		config.MaxBytes = m.options.MaxBytes
	}
	m.modes.allowBatches(&config)
	return config
}

// overlap names the stream that has our subjects.
func (m *manager) overlap(ctx context.Context) error {
	owner := "another stream"
	for _, subject := range m.options.Subjects {
		if name, err := m.owner(ctx, subject); err == nil && name != "" {
			owner = "stream " + name
			break
		}
	}
	return permanent("create stream %s: %s takes subjects of %q already: name other subjects, or write to that stream",
		m.name, owner, m.options.Subjects)
}

// owner is the name of a stream that takes the subject, "" if there is none.
func (m *manager) owner(ctx context.Context, subject string) (string, error) {
	query, err := json.Marshal(map[string]string{"subject": subject})
	if err != nil {
		return "", err
	}
	var names struct {
		Streams []string `json:"streams"`
	}
	if err := m.conn.Request(ctx, "STREAM.NAMES", query, &names); err != nil || len(names.Streams) == 0 {
		return "", err
	}
	return names.Streams[0], nil
}
