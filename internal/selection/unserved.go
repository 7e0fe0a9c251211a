package selection

import (
	"slices"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/source"
)

// Adopt adds the unserved streams to what is chosen.
func (f *Follower) Adopt() error {
	unserved, err := f.unserved()
	if err != nil {
		return err
	}
	chosen := f.Current.Chosen.Load()
	f.Current.Chosen.Store(&Choice{Streams: slices.Concat(chosen.Streams, unserved), Left: chosen.Left})
	return nil
}

// unserved are streams that the state knows and the configuration chooses, and whose resource is not served now: it may
// come back, or the sinks must be told that its objects are gone.
func (f *Follower) unserved() ([]Selected, error) {
	known, err := f.Store.KnownStreams()
	if err != nil {
		return nil, err
	}
	var unserved []Selected
	for _, stream := range known {
		if f.Catalog.Serves(stream.Resource) {
			continue
		}
		for _, s := range f.chooseSaved(stream) {
			if !slices.ContainsFunc(unserved, func(other Selected) bool { return other.Stream == s.Stream }) {
				unserved = append(unserved, s)
			}
		}
	}
	return unserved, nil
}

// chooseSaved finds what the configuration chooses of a stream which is not served: its name first, then a wildcard.
// Where other namespaces are configured now, it is the streams that have a part of it.
func (f *Follower) chooseSaved(stream change.Stream) []Selected {
	for _, wildcards := range []bool{false, true} {
		for i := range f.Config.Resources {
			configured := &f.Config.Resources[i]
			named := strings.EqualFold(configured.Name, stream.Resource.String())
			covered := source.Covers(configured.Name, stream.Resource) && !configured.Excludes(stream.Resource.String())
			if !wildcards && !named || wildcards && !covered {
				continue
			}
			apart := func(s Selected) bool { return !overlap(s.Stream.Namespace, stream.Namespace) }
			entries := config.EntriesOf(f.Config.Resources, configured.Name)
			if chosen := slices.DeleteFunc(streamsOf(stream.Resource, entries), apart); len(chosen) > 0 {
				return chosen
			}
		}
	}
	return nil
}
