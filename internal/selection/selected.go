package selection

import (
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/source"
)

// Selected is one stream and where it came from.
type Selected struct {
	Stream    change.Stream
	Selection source.Selection
	Names     []string // the configured names that stand for it
	// Configured is the entry of the configuration that chooses its objects, and says what becomes of the records of
	// those that no special one takes.
	Configured *config.Resource
	Special    []*config.Resource // the entries before it of the same name; the first counts that takes an object
}

// IsNamed says whether a configured name stands for this stream alone, and no wildcard found it.
func (s *Selected) IsNamed() bool {
	return slices.ContainsFunc(s.Names, func(name string) bool { return !source.IsWildcard(name) })
}
