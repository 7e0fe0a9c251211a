package kafka

import (
	"slices"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// TestAnObjectThatMovesBetweenTopicsIsReadInItsOrder although both records came within one millisecond, which is all
// that Kafka's times tell.
func TestAnObjectThatMovesBetweenTopicsIsReadInItsOrder(t *testing.T) {
	moment := time.UnixMilli(1)
	next := func(key, version string) *stretch {
		headers := []sink.Header{{Name: sink.HeaderResourceVersion, Value: version}}
		return &stretch{behind: []*sink.Stored{{Key: []byte(key), Headers: headers, Time: moment}}}
	}
	older, newer, other := next("k", "99"), next("k", "100"), next("j", "1")
	tests := map[string]struct {
		all  []*stretch
		last *stretch
		want *stretch
	}{
		"the older version is behind":           {[]*stretch{newer, other, older}, nil, older},
		"the older version is before":           {[]*stretch{older, other, newer}, nil, older},
		"the record before was the newer topic": {[]*stretch{newer, older}, newer, older},
		"a tombstone follows its delete":        {[]*stretch{older, other}, other, other},
	}
	for name, test := range tests {
		if got := slices.MinFunc(test.all, byAge(test.last)); got != test.want {
			t.Errorf("%s: read %+v, want %+v", name, got.behind[0], test.want.behind[0])
		}
	}
}
