package kafka

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

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
	// Group is the group of consumers as which the brokers keep how far the signals were read. It belongs to one state.
	Group   string
	Place   string // that was saved; "" is none
	Handler SignalHandler
	Heard   func(error) // is told after each look that signals can be read, or why not
}

// signalBatch is the most bytes that a batch of signals may hold when decompressed (I6).
const signalBatch = 16 << 20

// signalLog reads a topic of signals from a place that its caller saves. It is for one goroutine.
//
// A saved place may be older than what was done: somebody has put an earlier state back, or it comes from a log that
// was behind. So the place is also committed as the offset of a group, after each save. What is before that offset and
// after the saved place was read by a life that the state does not know of. It is old.
type signalLog struct {
	*Reader
	of        *SignalOptions
	earlier   map[int32]int64 // by partition: until where a life has read that the state may not know; nil is not asked
	unclaimed bool            // offsets of the group must not be committed
}

// newSignalLog checks the options.
func newSignalLog(of *SignalOptions) (*signalLog, error) {
	options := of.Sink
	options.Topics, options.Partitions, options.Cleanup, options.Retention = []string{of.Topic}, 1, "delete", signalRetention
	options.Configs = maps.Clone(options.Configs)
	for _, ours := range []string{"cleanup.policy", "retention.ms"} { // are of topics of records
		delete(options.Configs, ours)
	}
	if of.Notifications != "" {
		options.Topics = append(options.Topics, of.Notifications)
	}
	reader, err := NewReader(options, sink.Start{})
	if err != nil {
		return nil, err
	}
	reader.decoder = batch.NewDecoder(signalBatch)
	return &signalLog{Reader: reader, of: of}, nil
}

// signalFetch is how long a part of a partition may take.
const signalFetch = 30 * time.Second

// signalRetention is how long topics that are made here keep what is in them.
const signalRetention = 7 * 24 * time.Hour

// each is given a message. After an error it has not taken it, and is given it again.
type each func(*signal.Message) error

// read hands on what lies after the place, and returns the place after what was taken. At "" nothing is handed on:
// the place is after what is there. It asks as long as the brokers do not answer.
func (l *signalLog) read(ctx context.Context, place string, to each) (string, error) {
	at, err := parseSignalPlace(place)
	if err != nil {
		return place, err
	}
	if err := errors.Join(l.connect(), l.reach(ctx)); err != nil {
		return place, err
	}
	there, err := l.look(ctx)
	if err != nil {
		return place, err
	}
	at = at.arrive(there)
	if err := l.recall(ctx, &at); err != nil {
		return place, err
	}
	for _, number := range slices.Sorted(maps.Keys(there.ends)) {
		if err := l.readOn(ctx, &stretchOfSignals{&at, number, there.ends[number].End}, to); err != nil {
			return at.encode(), err
		}
	}
	if there.id == "" {
		return at.encode(), missing(l.of.Topic)
	}
	return at.encode(), nil
}

func missing(topic string) error {
	return permanent("look up topic %s: it does not exist: create it, or let the exporter do it with kafka.create", topic)
}

// look is which topic is there. It is made where that is wanted.
func (l *signalLog) look(ctx context.Context) (there *found, err error) {
	err = l.persist(ctx, "look up topic "+l.of.Topic, func(ctx context.Context) (err error) {
		there, err = l.lookOnce(ctx)
		if wire.Code(err) != codeUnknownTopic {
			return err
		}
		if there = (&found{name: l.of.Topic, now: l.now().UnixMilli()}); !l.options.Create {
			return nil
		}
		if err = l.cluster.Create(ctx, l.options.spec(l.of.Topic)); err == nil {
			there, err = l.lookOnce(ctx)
		}
		return err
	})
	return there, err
}

func (l *signalLog) lookOnce(ctx context.Context) (*found, error) {
	identity, err := l.cluster.Identity(ctx, l.of.Topic)
	if err != nil {
		return nil, err
	}
	topic, err := l.cluster.Topic(ctx, l.of.Topic)
	if err != nil {
		return nil, err
	}
	var numbers []int32
	for _, p := range topic.Partitions {
		numbers = append(numbers, p.ID)
	}
	there := &found{name: l.of.Topic, id: identity.ID, now: l.now().UnixMilli()}
	if there.id == "" {
		there.id = noID
	}
	there.ends, err = l.cluster.Bounds(ctx, l.of.Topic, numbers, true)
	return there, err
}

// recall asks once in a life until where an earlier one has read.
func (l *signalLog) recall(ctx context.Context, at *signalPlace) error {
	if l.earlier != nil || at.Topic == "" {
		return nil
	}
	earlier := map[int32]int64{}
	numbers := slices.Sorted(maps.Keys(at.Next))
	err := l.persist(ctx, "read the offsets of group "+l.of.Group, func(ctx context.Context) error {
		offsets, err := l.cluster.GroupOffsets(ctx, l.of.Group, l.of.Topic, numbers)
		for number, o := range offsets {
			if o.Note == at.Topic {
				earlier[number] = o.Offset
			}
		}
		return err
	})
	if err != nil && !l.isUnclaimed(err) {
		return err
	}
	l.earlier = earlier
	return nil
}

// isUnclaimed says whether the group is refused, and tells so once.
func (l *signalLog) isUnclaimed(err error) bool {
	switch wire.Code(err) {
	case codeUnknownMember, codeGroupForbidden:
	default:
		return false
	}
	if !l.unclaimed {
		l.options.Notice(fmt.Sprintf("may follow signals again after its state was put back: %v", wire.Explain(err)))
	}
	l.unclaimed = true
	return true
}

// stretchOfSignals is what is read of a partition.
type stretchOfSignals struct {
	at     *signalPlace
	number int32
	end    int64
}

// readOn hands on what the partition has up to the end, unless the topic becomes another one meanwhile.
func (l *signalLog) readOn(ctx context.Context, of *stretchOfSignals, to each) error {
	p := &progress{offset: of.at.Next[of.number], aborted: map[int64]bool{}}
	s := &stretch{slot: slot{l.of.Topic, of.number}, progress: p, end: of.end, most: l.tuning.fetch}
	for s.offset < s.end {
		result, err := l.fetchSoon(ctx, s)
		if err != nil {
			return err
		}
		if there, err := l.look(ctx); err != nil || there.id != of.at.Topic {
			return err // what was read may be of the other topic
		}
		before := s.offset
		if err = l.take(p, &result, func(e *batch.Entry) error { return l.hand(of, e, to) }); err != nil {
			err = l.passOver(of, err, to)
		}
		if err != nil {
			return err
		}
		if s.offset = max(s.offset, of.at.Next[of.number]); s.offset == before {
			return fmt.Errorf("%s: %w", s, errNothingRead)
		}
		of.at.Next[of.number] = s.offset
	}
	return nil
}

// fetchSoon gives up after a while: the topic may be gone, which only who looks at it sees.
func (l *signalLog) fetchSoon(ctx context.Context, s *stretch) (wire.FetchResult, error) {
	ctx, cancel := context.WithTimeout(ctx, signalFetch)
	defer cancel()
	return l.fetch(ctx, s)
}

// passOver goes on after a batch that cannot be read, which is told. Other errors remain.
func (l *signalLog) passOver(of *stretchOfSignals, err error, to each) error {
	var unreadable *unreadableError
	if !errors.As(err, &unreadable) {
		return err
	}
	last := unreadable.end - 1
	behind := of.at.behind(of.number, last, of.at.Time)
	m := &signal.Message{Place: l.placeOf(of.number, last), Offset: last, After: behind.encode, Broken: err}
	if err := to(m); err != nil {
		return err
	}
	*of.at = behind
	return nil
}

func (l *signalLog) placeOf(number int32, offset int64) string {
	return fmt.Sprintf("%s-%d-%d", l.of.Topic, number, offset)
}

func (l *signalLog) hand(of *stretchOfSignals, e *batch.Entry, to each) error {
	if e.Offset < of.at.Next[of.number] {
		return nil
	}
	behind := of.at.behind(of.number, e.Offset, min(e.Timestamp, l.now().UnixMilli()))
	m := &signal.Message{Key: e.Key, Value: e.Value, Place: l.placeOf(of.number, e.Offset), Offset: e.Offset, After: behind.encode}
	switch {
	case e.Offset < l.earlier[of.number]:
		m.Old = "it was read before, by an exporter whose state is not here any more: send it again with another id if it is still wanted"
	case of.at.Old > 0 && e.Timestamp <= of.at.Old:
		m.Old = "it was written before the topic was made anew: send it again with another id if it is still wanted"
	}
	if err := to(m); err != nil {
		return err
	}
	*of.at = behind
	return nil
}

// claim commits the place, which is saved, as the offset of the group. It asks as long as the brokers do not answer.
func (l *signalLog) claim(ctx context.Context, place string) error {
	at, err := parseSignalPlace(place)
	if err != nil || l.unclaimed || at.Topic == "" {
		return err
	}
	offsets := map[int32]wire.GroupOffset{}
	for number, next := range at.Next {
		offsets[number] = wire.GroupOffset{Offset: next, Note: at.Topic}
	}
	err = l.persist(ctx, "commit offsets of group "+l.of.Group, func(ctx context.Context) error {
		return l.cluster.CommitOffsets(ctx, l.of.Group, l.of.Topic, offsets)
	})
	if l.isUnclaimed(err) {
		return nil
	}
	return err
}

const (
	// notifyTime is how long an attempt to write notifications may take.
	notifyTime = 10 * time.Second
	// notifyBytes is the most that is written at once, unless one notification has more.
	notifyBytes = 128 << 10
)

// notify writes notifications, once: who was told of an error writes all of them again.
func (l *signalLog) notify(ctx context.Context, key []byte, values [][]byte) error {
	ctx, cancel := context.WithTimeout(ctx, notifyTime)
	defer cancel()
	if err := l.connect(); err != nil {
		return err
	}
	for len(values) > 0 {
		n, size := 0, 0
		for n < len(values) && (n == 0 || size+len(values[n]) <= notifyBytes) {
			size += len(values[n])
			n++
		}
		if err := l.notifySome(ctx, key, values[:n]); err != nil {
			return fmt.Errorf("write notifications: %w", classify(wire.Explain(err)))
		}
		values = values[n:]
	}
	return nil
}

func (l *signalLog) notifySome(ctx context.Context, key []byte, values [][]byte) error {
	encoder, err := batch.NewEncoder(batch.None)
	if err != nil {
		return err
	}
	for _, value := range values {
		encoder.Add(&batch.Record{Key: key, Value: value, Timestamp: l.now().UnixMilli()})
	}
	bytes, err := encoder.Finish(nil, batch.Producer{ID: -1, Epoch: -1, Sequence: -1})
	if err != nil {
		return err
	}
	request := wire.ProduceRequest{Topic: l.of.Notifications, Batch: bytes}
	_, err = l.cluster.Produce(ctx, request)
	if wire.Code(err) == codeUnknownTopic && l.options.Create {
		if err = l.cluster.Create(ctx, l.options.spec(l.of.Notifications)); err == nil {
			_, err = l.cluster.Produce(ctx, request)
		}
	}
	if err != nil {
		l.cluster.Refresh()
	}
	return err
}

// check says what keeps signals from being read, and notifications from being written. It changes nothing.
func (l *signalLog) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	defer l.disconnect()
	if err := l.connect(); err != nil {
		return err
	}
	if err := l.cluster.Reach(ctx); err != nil {
		return checkError("reach the brokers", wire.Explain(err))
	}
	errs := []error{l.checkTopic(ctx, l.of.Topic, wire.Read)}
	if errs[0] == nil {
		errs = append(errs, l.checkGroup(ctx))
	}
	if l.of.Notifications != "" {
		errs = append(errs, l.checkTopic(ctx, l.of.Notifications, wire.Write))
	}
	return errors.Join(errs...)
}

// checkGroup looks whether the group may be used. Coordinators that are only being made say nothing of it.
func (l *signalLog) checkGroup(ctx context.Context) error {
	_, err := l.cluster.GroupOffsets(ctx, l.of.Group, l.of.Topic, []int32{0})
	if wire.Classify(err) == wire.Fatal {
		return wire.Explain(err)
	}
	return nil
}

func (l *signalLog) checkTopic(ctx context.Context, name string, operation int) error {
	identity, err := l.cluster.Identity(ctx, name)
	switch {
	case wire.Code(err) == codeUnknownTopic && l.options.Create:
		return checkError("create topic "+name, wire.Explain(l.cluster.Validate(ctx, l.options.spec(name))))
	case wire.Code(err) == codeUnknownTopic:
		return missing(name)
	case err != nil:
		return checkError("look up topic "+name, wire.Explain(err))
	case identity.Operations.Lacks(operation):
		word := map[int]string{wire.Read: "READ", wire.Write: "WRITE"}[operation]
		return permanent("use topic %s: the user is not permitted: grant %s on topic %s", name, word, name)
	}
	settings, err := l.cluster.Settings(ctx, name)
	if err == nil && strings.Contains(settings.CleanupPolicy, "compact") {
		return permanent("use topic %s: it is compacted, and keeps the newest message of a cluster alone: set its cleanup.policy to delete", name)
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

// found is what there is of the topic now.
type found struct {
	name string
	id   string // "" is that there is none
	ends map[int32]wire.Bounds
	now  int64 // in ms since 1970
}

// arrive is the place to read on from. Who was nowhere, or in a topic of another name, begins at the end.
func (p signalPlace) arrive(at *found) signalPlace {
	next := signalPlace{Name: at.name, Topic: at.id, Next: map[int32]int64{}, Time: p.Time, Old: p.Old}
	nowhere := p.Name != at.name
	if nowhere {
		next.Time, next.Old = at.now, 0
	}
	if !nowhere && at.id != p.Topic || at.id == "" { // made anew, perhaps filled with what was in the one before
		next.Old = next.Time
	}
	for number, bounds := range at.ends {
		switch read, known := p.Next[number]; {
		case nowhere:
			next.Next[number] = bounds.End
		case at.id != p.Topic || !known:
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
