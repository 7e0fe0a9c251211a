package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// followStreams follows several streams as if they were one. What is in one of them because of what is in another is
// behind that. A reading takes what was stored before it began: on a busy machine it might never reach the end.
func followStreams(logs []*streamLog) *follower {
	last := make([]uint64, len(logs))
	return &follower{
		name: "nats",
		more: func(ctx context.Context, have int) (events []event, err error) {
			began := time.Now()
			for found := true; found; {
				found = false
				for i, log := range logs {
					some, err := log.readByOne(ctx, last[i]+1, began)
					if err != nil {
						return nil, err
					}
					last[i] += uint64(len(some))
					events, found = append(events, some...), found || len(some) > 0
				}
			}
			slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.stored.UnixNano(), b.stored.UnixNano()) })
			for i := range events {
				events[i].place, events[i].routed = have+i+1, ""
			}
			return events, nil
		},
		again: func() *follower { return followStreams(logs) },
	}
}

// readByOne is read without a consumer, for so many readings would leave too many, up to what was stored at the time.
func (s *streamLog) readByOne(ctx context.Context, first uint64, until time.Time) (events []event, err error) {
	stream, err := s.js.Stream(ctx, s.name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for seq := first; seq <= stream.CachedInfo().State.LastSeq; seq++ {
		message, err := stream.GetMsg(ctx, seq)
		if err != nil {
			return nil, fmt.Errorf("read message %d: %w", seq, err)
		}
		if message.Time.After(until) {
			break
		}
		found, err := parseEvent(message.Data)
		if err != nil {
			return nil, fmt.Errorf("read message %d: %w", seq, err)
		}
		found.stored, found.header = message.Time, message.Header.Get("kubecdc-id")
		events = append(events, found)
	}
	return events, nil
}
