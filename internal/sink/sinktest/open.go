package sinktest

import (
	"context"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// Open opens the sink and returns the ids that it finds after the mark.
func Open(ctx context.Context, s sink.Sink, mark sink.Mark) (ids []string, err error) {
	err = s.Open(ctx, sink.Opening{Mark: mark, After: collect(&ids)})
	if err != nil {
		return nil, err
	}
	return ids, nil
}

// collect is a tail that keeps all ids.
func collect(ids *[]string) sink.Tail {
	return func() func(string) {
		*ids = nil
		return func(id string) { *ids = append(*ids, id) }
	}
}
