package checkpoint

import (
	"maps"
	"slices"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// sinks are where each sink stands in its own log: its mark, and what that carries.
type sinks struct {
	*database
	*zipper
}

// Mark is the sink's saved mark, false for a sink that the state does not know.
func (s sinks) Mark(sinkName string) (sink.Mark, bool, error) {
	value, found, err := s.get(markKey(sinkName))
	return sink.Mark(value), found, err
}

// Marks are those of all sinks, by name.
func (s sinks) Marks() (map[string]sink.Mark, error) {
	marks := map[string]sink.Mark{}
	err := s.each([]byte{tableMark}, func(key, value []byte) error {
		marks[string(key[1:])] = sink.Mark(value)
		return nil
	})
	return marks, err
}

// Sinks are the names of the sinks that the state knows anything of, sorted.
func (s sinks) Sinks() ([]string, error) {
	marks, err := s.Marks()
	if err != nil {
		return nil, err
	}
	all, err := subscriptions{s.database}.Subscriptions()
	for subscription := range all {
		marks[subscription.Sink] = ""
	}
	return slices.Sorted(maps.Keys(marks)), err
}
