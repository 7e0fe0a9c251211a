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
		from         signalPlace
		name, id     string
		ends         []wire.Bounds
		next         int64
		old, newTime int64
	}{
		"nowhere":                        {signalPlace{}, "s", "a", bounds(2, 9), 9, 0, 100},
		"nowhere, and there is no topic": {signalPlace{}, "s", "", nil, 0, 100, 100},
		"the same topic":                 {saved, "s", "a", bounds(0, 9), 7, 0, 50},
		"the log has lost its beginning": {saved, "s", "a", bounds(8, 9), 8, 0, 50},
		"the log has lost its end":       {saved, "s", "a", bounds(0, 5), 5, 0, 50},
		"the topic is gone":              {saved, "s", "", nil, 0, 50, 50},
		"the topic was made anew":        {saved, "s", "b", bounds(0, 3), 0, 50, 50},
		"another topic is configured":    {saved, "t", "c", bounds(0, 3), 3, 0, 100},
	} {
		text := c.from.encode()
		if c.from.Name == "" {
			text = ""
		}
		from, err := parseSignalPlace(text)
		must(t, err)
		got := from.arrive(signalPlace{Name: c.name, Topic: c.id, Time: 100}, c.ends)
		if got.Next[0] != c.next || got.Old != c.old || got.Time != c.newTime || got.Topic != c.id || got.Name != c.name {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if _, err := parseSignalPlace("{"); err == nil {
		t.Error("a damaged place is read")
	}
}
