package pipeline

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// LeftError says what a stop could not deliver within its deadline. Nothing of it is lost: the next start continues
// there.
type LeftError struct {
	Timeout time.Duration
	Queued  map[string]int // records by sink
}

func (e *LeftError) Error() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(e.Queued)) {
		parts = append(parts, fmt.Sprintf("sink %s: %d records", name, e.Queued[name]))
	}
	return fmt.Sprintf("stop within %s: left undelivered: %s: the next start continues there", e.Timeout, strings.Join(parts, ", "))
}

// left is what the listeners did not deliver, nil if that is nothing.
func (p *participants) left() error {
	queued := map[string]int{}
	for _, l := range p.listeners {
		if n := l.Unsaved(); n > 0 {
			queued[l.Name] = n
		}
	}
	if len(queued) == 0 {
		return nil
	}
	return &LeftError{Timeout: p.StopTimeout, Queued: queued}
}
