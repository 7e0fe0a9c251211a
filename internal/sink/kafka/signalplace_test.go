package kafka

import (
	"testing"

	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

// TestASavedPlaceLeadsOn, whatever became of the topic since.
func TestASavedPlaceLeadsOn(t *testing.T) {
	saved := signalPlace{Name: "s", Topic: "a", Next: map[int32]int64{0: 7}, Time: 50}
	bounds := func(first, end int64) []wire.Bounds { return []wire.Bounds{{First: first, End: end}} }
	for name, c := range map[string]struct {
		from     signalPlace
		at       found
		next     int64
		old, now int64
	}{
		"nowhere":                        {signalPlace{}, found{"s", "a", bounds(2, 9), 100}, 9, 0, 100},
		"nowhere, and there is no topic": {signalPlace{}, found{"s", "", nil, 100}, 0, 100, 100},
		"the same topic":                 {saved, found{"s", "a", bounds(0, 9), 100}, 7, 0, 50},
		"the log has lost its beginning": {saved, found{"s", "a", bounds(8, 9), 100}, 8, 0, 50},
		"the log has lost its end":       {saved, found{"s", "a", bounds(0, 5), 100}, 5, 0, 50},
		"the topic is gone":              {saved, found{"s", "", nil, 100}, 0, 50, 50},
		"the topic was made anew":        {saved, found{"s", "b", bounds(0, 3), 100}, 0, 50, 50},
		"another topic is configured":    {saved, found{"t", "c", bounds(0, 3), 100}, 3, 0, 100},
	} {
		text := c.from.encode()
		if c.from.Name == "" {
			text = ""
		}
		from, err := parseSignalPlace(text)
		must(t, err)
		got := from.arrive(&c.at)
		if got.Next[0] != c.next || got.Old != c.old || got.Time != c.now || got.Topic != c.at.id || got.Name != c.at.name {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if _, err := parseSignalPlace("{"); err == nil {
		t.Error("a damaged place is read")
	}
}
