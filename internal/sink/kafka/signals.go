package kafka

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/batch"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
	"github.com/kubecdc/kubecdc/internal/sink/signal"
)

// SignalHandler does what signals ask for. One goroutine calls it.
type SignalHandler interface {
	// Follow does what the message asks for, or refuses it for good. What it does it saves together with the place
	// after the message. After an error the message is not taken, and is given again after a pause.
	Follow(ctx context.Context, m *signal.Message) error
	// Tell sends what is to be told, and takes as told what was sent without an error.
	Tell(ctx context.Context, send func(values [][]byte) error) error
	// Save saves the place, after which nothing was done.
	Save(place string) error
}

// SignalOptions configures Signals. All but Notifications are needed.
type SignalOptions struct {
	Sink          Options // of the sink; its Retry is told why the brokers cannot be talked to
	Topic         string
	Notifications string // the topic in which it is told what becomes of signals; "" is none
	Cluster       []byte // the key of notifications
	Place         string // that was saved; "" is none
	Handler       SignalHandler
	Heard         func(error) // is told after each look that signals can be read, or why not
}

const (
	// signalPause is between two looks at the topic.
	signalPause = time.Second
	// signalsAtOnce is how many messages are taken between two pauses (I6): a flood of them costs little.
	signalsAtOnce = 1000
	// signalBatch is the most bytes that a batch of signals may hold when decompressed (I6).
	signalBatch = 16 << 20
	// signalFetch is how long a part of a partition may take.
	signalFetch = 30 * time.Second
	// signalRetention is how long topics that are made here keep what is in them.
	signalRetention = 7 * 24 * time.Hour
	// notifyTime is how long an attempt to write notifications may take.
	notifyTime = 10 * time.Second
	// notifyBytes is the most that is written at once, unless one notification has more.
	notifyBytes = 128 << 10
)

// Signals are those that a topic has, read from a place that is saved. It is for one goroutine.
type Signals struct {
	*fetcher
	of    *SignalOptions
	place string // until where messages were taken
	saved string // of that
	left  int    // messages that are taken before the next pause
}

// NewSignals checks the options, and connects to nobody.
func NewSignals(of SignalOptions) (*Signals, error) {
	options := of.Sink
	options.Topics, options.Partitions, options.Cleanup, options.Retention = []string{of.Topic}, 1, "delete", signalRetention
	options.Configs = maps.Clone(options.Configs)
	maps.DeleteFunc(options.Configs, func(name, _ string) bool { // what is of topics of records
		return name == cleanupPolicy || name == "retention.ms"
	})
	if of.Notifications != "" {
		options.Topics = append(options.Topics, of.Notifications)
	}
	reader, err := NewReader(options, sink.Start{})
	if err != nil {
		return nil, err
	}
	reader.decoder = batch.NewDecoder(signalBatch)
	return &Signals{fetcher: reader.fetcher, of: &of, place: of.Place, saved: of.Place}, nil
}

// Run hands signals to the handler until ctx ends.
func (s *Signals) Run(ctx context.Context) {
	defer s.disconnect()
	wait := backoff.NewExponentialBackOff(backoff.WithInitialInterval(signalPause), backoff.WithMaxInterval(time.Minute), backoff.WithMaxElapsedTime(0))
	for {
		err := s.look(ctx)
		if ctx.Err() != nil {
			return
		}
		s.of.Heard(err)
		next := signalPause
		if err == nil {
			wait.Reset()
		} else {
			next = wait.NextBackOff()
		}
		if !sink.Pause(ctx, next, nil) {
			return
		}
	}
}

// look takes what is there, within limits, and tells what is to be told. It makes sure that the place is known to the
// next life.
func (s *Signals) look(ctx context.Context) error {
	s.left = signalsAtOnce
	err := s.read(ctx)
	if errors.Is(err, signal.ErrEnough) {
		err = nil
	}
	told := s.of.Handler.Tell(ctx, func(values [][]byte) error { return s.notify(ctx, values) })
	if s.place == s.saved {
		return errors.Join(err, told)
	}
	saved := s.of.Handler.Save(s.place)
	if saved == nil {
		s.saved = s.place
	}
	return errors.Join(err, saved, told)
}

// read takes what lies after the place, and moves it. At "" nothing is taken: the place is after what is there. It asks
// as long as the brokers do not answer.
func (s *Signals) read(ctx context.Context) error {
	at, err := parseSignalPlace(s.place)
	if err != nil {
		return err
	}
	if err := s.reach(ctx); err != nil {
		return err
	}
	id, ends, err := s.find(ctx)
	if err != nil {
		return err
	}
	at = at.arrive(signalPlace{Name: s.of.Topic, Topic: id, Time: s.now().UnixMilli()}, ends)
	for number := range ends {
		if err = s.readOn(ctx, &at, int32(number), ends[number].End); err != nil {
			break
		}
	}
	s.place = at.encode()
	if err == nil && id == "" {
		err = missing("look up", s.of.Topic)
	}
	return err
}

// find is the id of the topic that is there, and its ends; "" is that there is none. It is made where that is wanted.
func (s *Signals) find(ctx context.Context) (id string, ends []wire.Bounds, err error) {
	err = s.persist(ctx, "look up topic "+s.of.Topic, func(ctx context.Context) error {
		topic, err := s.cluster.Topic(ctx, s.of.Topic)
		if wire.Code(err) == kerr.UnknownTopicOrPartition.Code {
			if id, ends = "", nil; !s.options.Create {
				return nil
			}
			if err = s.cluster.Create(ctx, s.options.spec(s.of.Topic)); err == nil {
				topic, err = s.cluster.Topic(ctx, s.of.Topic)
			}
		}
		if err != nil {
			return err
		}
		id = cmp.Or(topic.ID, noID)
		ends, err = s.cluster.Bounds(ctx, s.of.Topic, len(topic.Partitions), true)
		return err
	})
	return id, ends, err
}

// readOn takes what the partition has up to the end, unless the topic becomes another one meanwhile.
func (s *Signals) readOn(ctx context.Context, at *signalPlace, number int32, end int64) error {
	part := s.piece(s.of.Topic, number, span{at.Next[number], end})
	for part.offset < part.end {
		soon, cancel := context.WithTimeout(ctx, signalFetch) // the topic may be gone, which only who looks at it sees
		result, err := s.fetch(soon, part)
		cancel()
		if err != nil {
			return err
		}
		if id, _, err := s.find(ctx); err != nil || id != at.Topic {
			return err // what was read may be of the other topic
		}
		before := part.offset
		err = s.take(part, &result, func(e *batch.Entry) error {
			if e.Offset < at.Next[number] {
				return nil
			}
			m := &signal.Message{Key: e.Key, Value: e.Value, Offset: e.Offset}
			if at.Old > 0 && e.Timestamp <= at.Old {
				m.Old = "it was written before the topic was made anew: send it again with another id if it is still wanted"
			}
			return s.follow(ctx, at, number, min(e.Timestamp, s.now().UnixMilli()), m)
		})
		if unreadable, is := errors.AsType[*unreadableError](err); is && unreadable.end > 0 { // it is told, and passed over
			err = s.follow(ctx, at, number, at.Time, &signal.Message{Offset: unreadable.end - 1, Broken: err})
		}
		if err != nil {
			return err
		}
		if part.offset = max(part.offset, at.Next[number]); part.offset == before {
			return fmt.Errorf("%s: %w", part, errNothingRead)
		}
		at.Next[number] = part.offset
	}
	return nil
}

// follow has the handler take a message, and moves the place behind it.
func (s *Signals) follow(ctx context.Context, at *signalPlace, number int32, time int64, m *signal.Message) error {
	if s.left--; s.left < 0 {
		return signal.ErrEnough
	}
	behind := at.behind(number, m.Offset, time)
	m.Place, m.After = fmt.Sprintf("%s-%d-%d", s.of.Topic, number, m.Offset), behind.encode
	if err := s.of.Handler.Follow(ctx, m); err != nil {
		return err
	}
	*at = behind
	return nil
}

// notify writes notifications, once: who was told of an error writes all of them again.
func (s *Signals) notify(ctx context.Context, values [][]byte) error {
	ctx, cancel := context.WithTimeout(ctx, notifyTime)
	defer cancel()
	if err := s.connect(); err != nil {
		return err
	}
	for encoder := batch.NewEncoder(batch.None); len(values) > 0; {
		n, size := 0, 0
		for n < len(values) && (n == 0 || size+len(values[n]) <= notifyBytes) {
			size += len(values[n])
			n++
		}
		for _, value := range values[:n] {
			encoder.Add(&batch.Record{Key: s.of.Cluster, Value: value, Timestamp: s.now().UnixMilli()})
		}
		made := encoder.Finish(nil, batch.Producer{ID: -1, Epoch: -1, Sequence: -1})
		request := wire.ProduceRequest{Topic: s.of.Notifications, Batch: made}
		_, err := s.cluster.Produce(ctx, request)
		if wire.Code(err) == kerr.UnknownTopicOrPartition.Code && s.options.Create {
			if err = s.cluster.Create(ctx, s.options.spec(s.of.Notifications)); err == nil {
				_, err = s.cluster.Produce(ctx, request)
			}
		}
		if err != nil {
			s.cluster.Refresh()
			return fmt.Errorf("write notifications: %w", wire.Explain(err))
		}
		values = values[n:]
	}
	return nil
}

// Check says what keeps signals from being read, and notifications from being written. It changes nothing.
func (s *Signals) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	defer s.disconnect()
	if err := s.connect(); err != nil {
		return err
	}
	if err := s.cluster.Reach(ctx); err != nil {
		return checkError("reach the brokers", wire.Explain(err))
	}
	err := s.checkTopic(ctx, s.of.Topic, wire.Read)
	if s.of.Notifications != "" {
		err = errors.Join(err, s.checkTopic(ctx, s.of.Notifications, wire.Write))
	}
	return err
}

func (s *Signals) checkTopic(ctx context.Context, name string, operation int) error {
	found, err := s.cluster.Topic(ctx, name)
	switch {
	case wire.Code(err) == kerr.UnknownTopicOrPartition.Code && s.options.Create:
		return checkError("create topic "+name, wire.Explain(s.cluster.Validate(ctx, s.options.spec(name))))
	case wire.Code(err) == kerr.UnknownTopicOrPartition.Code:
		return missing("look up", name)
	case err != nil:
		return checkError("look up topic "+name, wire.Explain(err))
	case found.Operations.Lacks(operation):
		word := map[int]string{wire.Read: "READ", wire.Write: "WRITE"}[operation]
		return sink.Permanent("use topic %s: the user is not permitted: grant %s on topic %s", name, word, name)
	}
	settings, err := s.cluster.Settings(ctx, name)
	if err == nil && compacts(settings.Values[cleanupPolicy]) {
		return sink.Permanent("use topic %s: it is compacted, and keeps the newest message of a cluster alone: set its cleanup.policy to delete", name)
	}
	return nil // who may not see the settings can use it all the same
}

// signalPlace is a place in a topic of signals.
type signalPlace struct {
	Name  string          `json:"name"`  // of the topic
	Topic string          `json:"topic"` // its id; "" while there is no topic
	Next  map[int32]int64 `json:"next,omitempty"`
	Time  int64           `json:"time"` // of the newest message that was read, in ms since 1970
	// Old is until when messages are old: a topic of the name that was there before may have had them.
	Old int64 `json:"old,omitempty"`
}

// noID is the id of topics where brokers give none (before Kafka 2.8).
const noID = "unknown"

// parseSignalPlace is the inverse of encode; "" is no place.
func parseSignalPlace(text string) (p signalPlace, err error) {
	if text == "" {
		return p, nil
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return p, fmt.Errorf("read the place in the topic of signals: %w", err)
	}
	return p, nil
}

func (p signalPlace) encode() string {
	text, _ := json.Marshal(p) // of numbers and texts it cannot fail
	return string(text)
}

// arrive is the place to read on from, in the topic that is there now, with its ends. Who was nowhere, or in a topic of
// another name, begins at the end.
func (p signalPlace) arrive(next signalPlace, ends []wire.Bounds) signalPlace {
	next.Next = map[int32]int64{}
	nowhere := p.Name != next.Name
	if !nowhere {
		next.Time, next.Old = p.Time, p.Old
	}
	if !nowhere && next.Topic != p.Topic || next.Topic == "" { // made anew, perhaps filled with what was in the one before
		next.Old = next.Time
	}
	for i, bounds := range ends {
		number := int32(i)
		switch read, known := p.Next[number]; {
		case nowhere:
			next.Next[number] = bounds.End
		case next.Topic != p.Topic || !known:
			next.Next[number] = bounds.First
		default:
			next.Next[number] = min(max(read, bounds.First), bounds.End) // the log may have lost both ends
		}
	}
	return next
}

// behind is the place after one more message.
func (p signalPlace) behind(number int32, offset, time int64) signalPlace {
	p.Next = maps.Clone(p.Next)
	p.Next[number], p.Time = offset+1, max(p.Time, time)
	return p
}
