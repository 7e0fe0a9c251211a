package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/nats/conn"
)

// ensure returns the stream, which it makes if there is none, if it can be a log of ours.
func (s *Sink) ensure(ctx context.Context) (*jetstream.StreamInfo, error) {
	info, err := s.lookup(ctx)
	if codeOf(err) == jetstream.JSErrCodeStreamNotFound {
		config, _ := json.Marshal(s.newStream()) // of texts and numbers it cannot fail
		info = new(jetstream.StreamInfo)
		err = s.conn.Request(ctx, "STREAM.CREATE."+s.options.Stream, config, info)
		switch codeOf(err) {
		case jetstream.JSErrCodeStreamNameInUse: // somebody was quicker
			info, err = s.lookup(ctx)
		case codeOverlap:
			owner, _ := s.owner(ctx) // the error that there is says enough
			err = s.overlap(owner)
		default:
			err = s.judge("create", err)
		}
	}
	if err != nil {
		return nil, err
	}
	return info, s.options.suitable(&info.Config)
}

// newStream is the stream that we make. Its limits are retention, as Kafka's are: at the limit the oldest messages go,
// unless the user prefers that we wait, which stops every change until somebody makes room. A bucket is as clients make
// it, and waits for room: a state that lacks its oldest objects would be none. No message has an id, unless others
// write to the stream, too, so the window for duplicates is as short as the server allows.
func (s *Sink) newStream() *jetstream.StreamConfig {
	o := &s.options
	config := &jetstream.StreamConfig{
		Name:              o.Stream,
		Description:       "Changes of Kubernetes objects, written by kubecdc",
		Subjects:          o.Subjects,
		Replicas:          o.Replicas,
		MaxAge:            o.MaxAge,
		MaxBytes:          o.MaxBytes,
		Duplicates:        100 * time.Millisecond,
		AllowDirect:       true,
		AllowBatchPublish: s.knowsBatches() && !o.Shared && !o.Single,
	}
	if o.Storage == StorageMemory {
		config.Storage = jetstream.MemoryStorage
	}
	if o.Shared {
		config.Duplicates = window
	}
	if o.DiscardNew || o.KV != "" {
		config.Discard = jetstream.DiscardNew
	}
	if o.KV != "" {
		config.MaxMsgsPerSubject, config.AllowRollup, config.DenyDelete = int64(o.History), true, true
	}
	return config
}

// knowsBatches says whether the server takes batches, where the stream allows it: from 2.14 on, whose level of the
// JetStream API (ADR-44) is 4.
func (s *Sink) knowsBatches() bool {
	_, level := s.conn.NC.ConnectedServerJetStream()
	return level >= 4
}

// overlap says which stream has our subjects; "" is not known.
func (s *Sink) overlap(owner string) error {
	who := "another stream"
	if owner != "" {
		who = "stream " + owner
	}
	return sink.Permanent("create stream %s: %s takes subjects of %q already: name other subjects, or write to that stream",
		s.options.Stream, who, s.options.Subjects)
}

// owner is the name of a stream that takes one of our subjects, "" if there is none.
func (s *Sink) owner(ctx context.Context) (string, error) {
	for _, subject := range s.options.Subjects {
		query, _ := json.Marshal(map[string]string{"subject": subject}) // of a text it cannot fail
		var names struct {
			Streams []string `json:"streams"`
		}
		if err := s.conn.Request(ctx, "STREAM.NAMES", query, &names); err != nil {
			return "", err
		}
		if len(names.Streams) > 0 {
			return names.Streams[0], nil
		}
	}
	return "", nil
}

// suitable refuses streams that would never be a log of ours.
func (o *Options) suitable(config *jetstream.StreamConfig) error {
	if err := o.fit("open", config); err != nil {
		return err
	}
	if o.Whole && len(bucketNotes(config)) > 0 {
		return sink.Permanent("open stream %s: it forgets values, by their age or at a limit: give it no max_age, and no limit or discard new", config.Name)
	}
	if o.Uncompacted != "" && config.MaxMsgsPerSubject > 0 {
		return sink.Permanent("open stream %s: it keeps %d messages of each subject, and %s, or name another stream", config.Name, config.MaxMsgsPerSubject, o.Uncompacted)
	}
	if o.Shared && config.Duplicates < window {
		return sink.Permanent("open stream %s: it knows ids for %s, and a shared stream needs %s: raise its duplicate_window",
			config.Name, config.Duplicates, window)
	}
	for _, subject := range o.Subjects {
		if !coveredByAny(config.Subjects, subject) {
			return sink.Permanent("open stream %s: it takes %q, which does not cover %q: give each cluster a stream of its own with the key stream, "+
				"or, where nobody else writes to it or all say that it is shared, add this to the stream's subjects",
				config.Name, config.Subjects, subject)
		}
	}
	return nil
}

// fit refuses settings with which no stream is a log of ours, also where a person changes them while we write. What it
// does not name of a stream's settings does no harm: a test holds it for each.
func (o *Options) fit(verb string, config *jetstream.StreamConfig) error {
	unfit := func(what, remedy string) error {
		return sink.Permanent("%s stream %s: %s: %s", verb, config.Name, what, remedy)
	}
	switch {
	case config.SubjectTransform != nil && slices.ContainsFunc(o.Subjects, func(ours string) bool {
		return config.SubjectTransform.Source == "" || Overlap(config.SubjectTransform.Source, ours)
	}):
		return unfit("it keeps messages under other subjects than they have (subject_transform), so that nobody can find there what a crash left undone",
			"remove its subject_transform, and let another stream take it in as a source with one")
	case config.SubjectDeleteMarkerTTL > 0:
		return unfit("its server writes markers into it (subject_delete_marker_ttl), which say of objects that they are gone", "set its subject_delete_marker_ttl to 0")
	case config.Mirror != nil:
		return unfit("it mirrors stream "+config.Mirror.Name, "name the origin, or another stream")
	case len(config.Sources) > 0:
		return unfit("it takes in stream "+config.Sources[0].Name, "give the exporter a stream of its own")
	case config.Sealed:
		return unfit("it is sealed", "name another stream")
	case config.NoAck:
		return unfit("it acknowledges nothing", "set no_ack to false")
	case config.AllowMsgCounter:
		return unfit("it takes counters only", "name another stream")
	case config.Retention == jetstream.WorkQueuePolicy:
		return unfit("it forgets what a consumer took (work-queue retention), so that nobody can find there what a crash left undone",
			"name a stream with limits retention, and let the work queue take it in as a source")
	case config.Retention == jetstream.InterestPolicy:
		return unfit("it forgets what no consumer waits for (interest retention), so that nobody can find there what a crash left undone",
			"name a stream with limits retention")
	case config.DiscardNewPerSubject:
		return unfit("it takes no change of an object that has its share of messages (discard_new_per_subject)",
			"set discard_new_per_subject to false")
	case config.PersistMode == jetstream.AsyncPersistMode:
		return unfit("it acknowledges what it has not stored yet (persist_mode async)", "set persist_mode to default")
	}
	return nil
}

// bucketNotes are what a person may want to know of a bucket that is there already.
func bucketNotes(config *jetstream.StreamConfig) (notes []string) {
	name := strings.TrimPrefix(config.Name, bucketStream)
	if config.MaxAge > 0 {
		notes = append(notes, fmt.Sprintf("bucket %s lets values expire after %s: it will lack objects that did not change for so long",
			name, config.MaxAge))
	}
	if config.Discard == jetstream.DiscardOld && (config.MaxBytes > 0 || config.MaxMsgs > 0) {
		notes = append(notes, fmt.Sprintf("bucket %s drops its oldest values at its limits (discard old): it will lack objects", name))
	}
	return notes
}

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
			"give the exporter a stream of its own with the key stream, or say that it is shared, with the key shared", s.options.Stream, last.subject))
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
	if !config.AllowBatchPublish && !s.options.Shared && s.knowsBatches() {
		notes = append(notes, fmt.Sprintf("stream %s does not take batches: set its allow_batched, which keeps all messages in order, also while "+
			"another exporter takes over", config.Name))
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

// last is the last message of a stream that is this sink's alone, nil where there is none to be read, and whether
// kubecdc has written it.
func (s *Sink) last(ctx context.Context) (last *entry, isOurs bool) {
	if s.options.Shared || s.options.Whole {
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
