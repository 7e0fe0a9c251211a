package check

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/selection"
	"github.com/kubecdc/kubecdc/internal/config"
)

// recorded is what a state remembers of the configuration with which a sink was opened: a hash of each value that its
// consumers see, by its key. Who reads the state can check a guess of a value, and read none.
type recorded struct {
	Kind    string                       `json:"kind"`
	Keys    map[string]string            `json:"keys"`    // of the sink, and of the whole configuration
	Streams map[string]map[string]string `json:"streams"` // of those that it takes
	Sinks   []string                     `json:"sinks"`   // all names
}

// Record is what the next start compares the sink's configuration with, as JSON.
func Record(c *cluster.Cluster, cfg *config.Config, s *config.Sink) ([]byte, error) {
	return json.Marshal(recordOf(c, cfg, s))
}

func recordOf(c *cluster.Cluster, cfg *config.Config, s *config.Sink) *recorded {
	r := &recorded{Kind: s.Kind(), Keys: map[string]string{}, Streams: map[string]map[string]string{}}
	hash := func(into map[string]string, all []config.Effect) {
		for _, e := range all {
			if e.Value != nil {
				mac := hmac.New(sha256.New, []byte(c.UID+"/"+s.Name+"/"+e.Key))
				mac.Write(e.Value)
				into[e.Key] = hex.EncodeToString(mac.Sum(nil)[:6])
			}
		}
	}
	hash(r.Keys, append(cfg.Effects(), s.Effects()...))
	for i := range cfg.Sinks {
		r.Sinks = append(r.Sinks, cfg.Sinks[i].Name)
	}
	streams := taken(c, s)
	for i := range streams {
		keys := map[string]string{}
		hash(keys, effectsOf(&streams[i]))
		r.Streams[streams[i].Stream.String()] = keys
	}
	return r
}

// effectsOf are those of the entries that are for the stream: a value of several is all of theirs, with what each is
// for.
func effectsOf(s *selection.Selected) []config.Effect {
	all := s.Configured.Effects()
	if len(s.Special) == 0 {
		return all
	}
	values := make([][]string, len(all))
	for _, entry := range s.Entries() {
		for i, e := range entry.Effects() {
			if e.Value != nil {
				values[i] = append(values[i], selection.Selects(entry)+string(e.Value))
			}
		}
	}
	for i := range all {
		if all[i].Value = nil; values[i] != nil {
			slices.Sort(values[i])
			all[i].Value = fmt.Appendf(nil, "%q", values[i])
		}
	}
	return all
}

// since says in one line each what consumers see of the keys that have another value than when the sink was opened
// last, none where that is not known, and whether anything differs.
func since(before []byte, c *cluster.Cluster, cfg *config.Config, s *config.Sink) (lines []string, differs bool) {
	var was recorded
	if json.Unmarshal(before, &was) != nil { // there is none
		return nil, true
	}
	is := recordOf(c, cfg, s)
	if was.Kind != is.Kind {
		return []string{fmt.Sprintf("sink %s was of kind %s and is of kind %s: the start is refused; give it another name", s.Name, was.Kind, is.Kind)}, true
	}
	for _, e := range cfg.Effects() {
		if was.Keys[e.Key] != is.Keys[e.Key] {
			lines = append(lines, fmt.Sprintf("%s has another value: %s", e.Key, e.Text))
		}
	}
	for _, e := range s.Effects() {
		if was.Keys[e.Key] != is.Keys[e.Key] {
			lines = append(lines, fmt.Sprintf("sink %s: %s has another value: %s", s.Name, e.Key, e.Text))
		}
	}
	for _, e := range new(config.Resource).Effects() {
		var of []string
		for _, stream := range slices.Sorted(maps.Keys(is.Streams)) {
			if had, known := was.Streams[stream]; known && had[e.Key] != is.Streams[stream][e.Key] {
				of = append(of, stream)
			}
		}
		if of != nil {
			lines = append(lines, fmt.Sprintf("%s of %s has another value: %s", e.Key, several(of), e.Text))
		}
	}
	return lines, !reflect.DeepEqual(&was, is)
}

// taken are the streams that the sink takes.
func taken(c *cluster.Cluster, s *config.Sink) []selection.Selected {
	wants := c.WantedBy(s)
	return c.StreamsThat(func(of *selection.Selected) bool { return wants == nil || wants(&of.Stream) })
}

// several names some of many.
func several(names []string) string {
	const most = 5
	slices.Sort(names)
	if more := len(names) - most; more > 0 {
		names = append(names[:most:most], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}
