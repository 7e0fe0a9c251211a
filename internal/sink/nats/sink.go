package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	s.conn = c
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
// it, and waits for room: a state that lacks its oldest objects would be none. No message has an id that the server
// would remember, so the window for duplicates is as short as the server allows.
func (s *Sink) newStream() *jetstream.StreamConfig {
	o := &s.options
	config := &jetstream.StreamConfig{
		Name:        o.Stream,
		Description: "Changes of Kubernetes objects, written by kubecdc",
		Subjects:    o.Subjects,
		Replicas:    o.Replicas,
		MaxAge:      o.MaxAge,
		MaxBytes:    o.MaxBytes,
		Duplicates:  100 * time.Millisecond,
		AllowDirect: true,
	}
	if o.Storage == StorageMemory {
		config.Storage = jetstream.MemoryStorage
	}
	if o.DiscardNew || o.KV != "" {
		config.Discard = jetstream.DiscardNew
	}
	if o.KV != "" {
		config.MaxMsgsPerSubject, config.AllowRollup, config.DenyDelete = int64(o.History), true, true
	}
	return config
}

// overlap says which stream has our subjects; "" is not known.
func (s *Sink) overlap(owner string) error {
	who := "another stream"
	if owner != "" {
		who = "stream " + owner
	}
	return sink.Permanent("create stream %s: %s takes subjects of %q already: name other subjects, or, where nobody else writes to it, that stream with the key stream",
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
	for _, subject := range o.Subjects {
		if !coveredByAny(config.Subjects, subject) {
			return sink.Permanent("open stream %s: it takes %q, which does not cover %q: give each cluster a stream of its own with the key stream, "+
				"or, where nobody else writes to it, add this to the stream's subjects",
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
