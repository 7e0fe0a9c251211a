package checkpoint

import (
	"bytes"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Subscription is a stream that a sink is given from its first record on: whoever has it needs no snapshot.
type Subscription struct {
	Sink   string
	Stream string
}

// subscriptions are which streams each sink takes, and the positions that its log of them is to be compared with.
type subscriptions struct{ *database }

// Subscriptions are the streams that the sinks have been given, by sink and stream.
func (s subscriptions) Subscriptions() (map[Subscription]bool, error) {
	all := map[Subscription]bool{}
	err := s.each([]byte{tableSubscription}, func(key, _ []byte) error {
		subscription, ok := parseSubscription(key)
		if !ok {
			return s.badValue("a subscription", errValue)
		}
		all[subscription] = true
		return nil
	})
	return all, err
}

// ReplayBases are the positions that the sink's log is to be compared with, by stream. They are older than the streams'
// own where records were spooled before the log could be read.
func (s subscriptions) ReplayBases(sinkName string) (map[string]change.Position, error) {
	bases, prefix := map[string]change.Position{}, sinkPrefix(tableReplayBase, sinkName)
	err := s.each(prefix, func(key, value []byte) error {
		position, err := parsePosition(value)
		if err != nil {
			return s.badValue("a base of sink "+sinkName, err)
		}
		bases[string(key[len(prefix):])] = position
		return nil
	})
	return bases, err
}

func subscriptionKey(s Subscription) []byte {
	return append(sinkPrefix(tableSubscription, s.Sink), s.Stream...)
}

// parseSubscription is the inverse of subscriptionKey.
func parseSubscription(key []byte) (Subscription, bool) {
	sinkName, stream, found := bytes.Cut(key[1:], []byte{terminator})
	return Subscription{Sink: string(sinkName), Stream: string(stream)}, found
}

func replayBaseKey(s Subscription) []byte {
	return append(sinkPrefix(tableReplayBase, s.Sink), s.Stream...)
}

// replayBase is the position that the sink's log is compared with, the stream's where there is none of its own.
func (s subscriptions) replayBase(of Subscription) (position change.Position, based bool, err error) {
	value, based, err := s.get(replayBaseKey(of))
	if err != nil {
		return position, false, err
	}
	if !based {
		position, _, err = streams{s.database}.Position(of.Stream)
		return position, false, err
	}
	if position, err = parsePosition(value); err != nil {
		err = s.badValue("a base of sink "+of.Sink, err)
	}
	return position, true, err
}
