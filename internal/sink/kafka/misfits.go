package kafka

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

// compacts says whether a topic with the cleanup.policy keeps the newest record of each key alone.
func compacts(policy string) bool { return strings.Contains(policy, "compact") }

// reserved refuses a topic that is for something else.
func (o *Options) reserved(name string) error {
	if what := o.Reserved(name); what != "" {
		return topicPermanent("open topic %s: it is %s, and records would destroy that: choose another kafka.topic", name, what)
	}
	return nil
}

// keepsAll refuses a compacted topic for what must not be in one.
func (o *Options) keepsAll(name, policy string) error {
	if !compacts(policy) {
		return nil
	}
	if why := o.Uncompacted(name); why != "" {
		return topicPermanent("open topic %s: the topic is compacted, and %s, or name another topic", name, why)
	}
	return nil
}

// misfits says in what the topic differs from what is configured, and which objects it will forget.
func (o *Options) misfits(known wire.Topic, settings wire.Settings) (all []string) {
	if have := len(known.Partitions); o.Partitions > 0 && have != o.Partitions {
		all = append(all, fmt.Sprintf("has %d partitions, and %d are configured", have, o.Partitions))
	}
	if len(known.Partitions) > 0 && o.Replication > 0 && len(known.Partitions[0].Replicas) != o.Replication {
		all = append(all, fmt.Sprintf("has %d replicas, and %d are configured", len(known.Partitions[0].Replicas), o.Replication))
	}
	configured := o.spec(known.Name).Configs
	for _, name := range slices.Sorted(maps.Keys(configured)) {
		if have, given := settings.Values[name]; given && !sameSetting(have, configured[name]) {
			all = append(all, fmt.Sprintf("has %s %s, and %s is configured", name, have, configured[name]))
		}
	}
	if len(all) > 0 {
		all = []string{strings.Join(all, ", ") + ": the topic stays as it is; change it, or the configuration"}
	}
	return append(all, o.forgets(settings.Values)...)
}

// sameSetting compares numbers by what they say, and lists in any order.
func sameSetting(a, b string) bool {
	x, err := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	if err == nil && err2 == nil {
		return x == y
	}
	sorted := func(list string) []string {
		return slices.Sorted(strings.SplitSeq(strings.ReplaceAll(list, " ", ""), ","))
	}
	return slices.Equal(sorted(a), sorted(b))
}

// forgets finds a table that loses the objects that do not change: one that is compacted, and deletes what is old all
// the same, unless every object is written again before that.
func (o *Options) forgets(values map[string]string) []string {
	if policy := values[cleanupPolicy]; !compacts(policy) || !strings.Contains(policy, "delete") {
		return nil
	}
	after, bytes := values["retention.ms"], values["retention.bytes"]
	millis, err := strconv.ParseInt(after, 10, 64)
	kept := time.Duration(millis) * time.Millisecond
	switch {
	case after == "" || err != nil:
		after = "the broker's retention"
	case millis >= 0 && (o.Resync == 0 || o.Resync > kept/2):
		after = kept.String()
	case bytes != "" && bytes != "-1":
		after = "more than " + bytes + " bytes"
	default:
		return nil
	}
	return []string{fmt.Sprintf("forgets objects that do not change, after %s, since its cleanup.policy is %s: "+
		"set it to compact, or resync to less than half of its retention", after, values[cleanupPolicy])}
}

// notes are said once each, however many topics they are about.
type notes struct{ texts []string }

func (n *notes) add(format, topic string, args ...any) {
	text := fmt.Sprintf(format, append([]any{"topic " + topic}, args...)...)
	if same := func(have string) bool { return strings.HasSuffix(have, strings.TrimPrefix(text, "topic "+topic)) }; !slices.ContainsFunc(n.texts, same) {
		n.texts = append(n.texts, text)
	}
}

func (n *notes) String() string { return strings.Join(n.texts, "; ") }
