package app

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/test/natsserver"
)

// natsStreet is a street with a NATS server.
type natsStreet struct {
	street
	js jetstream.JetStream
}

// plan is how they are configured.
type plan struct {
	same                bool // both clusters have one name, as by default
	stream, subject, kv string
	atOnce              bool // all start at the same time
	shared              bool
	ownStreams          bool // each exporter has a stream or bucket of its own
}

func (p plan) String() string {
	return fmt.Sprintf("at once %t, same name %t, stream %q, subject %q, bucket %q, shared %t, each its own %t", p.atOnce, p.same, p.stream, p.subject, p.kv, p.shared, p.ownStreams)
}

func (p plan) of(url, exporter string) string {
	keys := []string{fmt.Sprintf("url: %q", url)}
	add := func(key, value string) {
		if value != "" {
			keys = append(keys, fmt.Sprintf("%s: %q", key, value))
		}
	}
	stream, kv := p.stream, p.kv
	if p.ownStreams && kv == "" {
		stream = "S_" + exporter
	}
	if p.ownStreams && kv != "" {
		kv += "_" + exporter
	}
	add("stream", stream)
	subject := p.subject
	if p.ownStreams && kv == "" { // two streams cannot take one subject
		subject = exporter + "." + subject
	}
	add("subject", subject)
	add("kv", kv)
	if p.shared {
		keys = append(keys, "shared: true")
	}
	return "{" + strings.Join(keys, ", ") + "}"
}

func newNATSStreet(t *testing.T, p plan) *natsStreet {
	server := natsserver.Start(t)
	js := natsserver.Connect(t, server.URL())
	if p.shared && !p.ownStreams { // a person makes it, since its subjects are those of several clusters
		config := jetstream.StreamConfig{Name: p.stream, Subjects: []string{"k8s.>", "changes.>"}, Duplicates: 2 * time.Minute}
		if _, err := js.CreateStream(t.Context(), config); err != nil {
			t.Fatal(err)
		}
	}
	s := &natsStreet{newStreet(t, p.same), js}
	for _, n := range s.neighbours {
		n.once, n.sinks = true, "- name: bus\n  nats: "+p.of(server.URL(), n.name)
	}
	return s
}

// stored is one message.
type stored struct {
	stream, subject string
	id              change.ID
}

func (s *natsStreet) told() (all []stored) {
	names := s.js.StreamNames(s.t.Context())
	for name := range names.Name() {
		stream, err := s.js.Stream(s.t.Context(), name)
		if err != nil {
			s.t.Fatal(err)
		}
		state := stream.CachedInfo().State
		for seq := max(state.FirstSeq, 1); seq <= state.LastSeq; seq++ {
			m, err := stream.GetMsg(s.t.Context(), seq)
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				continue // replaced, in a bucket
			}
			if err != nil {
				s.t.Fatal(err)
			}
			id, err := change.ParseID(m.Header.Get("kubecdc-id"))
			if err != nil {
				s.t.Fatal(err)
			}
			all = append(all, stored{name, m.Subject, id})
		}
	}
	return all
}

// TestI10NeighboursOnOneServer: three exporters of two clusters on one NATS server, with their settings right and
// wrong. Whatever they are, nobody is told another's object: an object is told of under its own cluster's uid alone,
// and where two clusters have one name, no subject has records of both. Who cannot go on says which key to set; who
// goes on has told everything.
func TestI10NeighboursOnOneServer(t *testing.T) {
	refusals := map[string]int{}
	for _, p := range plans() {
		t.Run(p.String(), func(t *testing.T) {
			s := newNATSStreet(t, p)
			if p.atOnce {
				s.together()
			}
			s.each()
			s.crash(s.each)
			s.each()
			s.together()
			all := s.told()
			s.judge(p, all)
			for _, n := range s.neighbours {
				if n.refused != nil {
					refusals[n.name]++
				}
			}
		})
	}
	t.Logf("refused: %v of %d", refusals, len(plans()))
}

func plans() (all []plan) {
	subjects := []string{"k8s.{cluster}.{group}.{resource}.{namespace}.{name}", "changes.{resource}.{namespace}.{name}"}
	for _, same := range []bool{true, false} {
		for _, own := range []bool{true, false} {
			for _, subject := range subjects {
				for _, shared := range []bool{true, false} {
					all = append(all, plan{same: same, subject: subject, shared: shared, ownStreams: own, stream: "ALL"})
				}
			}
			all = append(all, plan{same: same, kv: "NOW", ownStreams: own})
		}
		all = append(all, plan{same: same}, plan{same: same, atOnce: true}) // nothing but defaults
		all = append(all, plan{same: same, subject: subjects[1], stream: "ALL", atOnce: true})
		all = append(all, plan{same: same, kv: "NOW", atOnce: true})
	}
	return all
}

func (s *natsStreet) judge(p plan, all []stored) {
	s.t.Helper()
	clusters := map[string]map[string]bool{} // by stream and subject without the object's name
	states := map[string]map[string]string{} // by stream and cluster: what the messages leave in existence
	count := map[change.ID]int{}
	for _, m := range all {
		letter := m.id.Cluster[:1]
		if m.id.UID != "" && m.id.UID[:1] != letter {
			s.t.Errorf("%s: object %s is told of under uid %s", m.stream, m.id.UID, m.id.Cluster)
		}
		place := m.stream + " " + m.subject[:strings.LastIndexByte(m.subject, '.')]
		if clusters[place] == nil {
			clusters[place] = map[string]bool{}
		}
		clusters[place][letter] = true
		if key := m.stream + letter; m.id.Op.OfObject() {
			if states[key] == nil {
				states[key] = map[string]string{}
			}
			if states[key][m.id.Key.Name] = m.id.UID; m.id.Op == change.Deleted {
				delete(states[key], m.id.Key.Name)
			}
			count[m.id]++
		}
	}
	for place, of := range clusters {
		if len(of) > 1 && (p.same || !p.shared) {
			s.t.Errorf("%s has records of %v", place, slices.Sorted(maps.Keys(of)))
		}
	}
	s.judgeEach(p, states, count)
}

// judgeEach compares what was told with the clusters, for those that were not refused.
func (s *natsStreet) judgeEach(p plan, states map[string]map[string]string, count map[change.ID]int) {
	going := map[string]int{}
	for _, n := range s.neighbours {
		letter := n.letter()
		if n.refused != nil {
			remedies := []string{"key cluster", "key stream", "key kv", "stop it", "name other subjects"}
			if !slices.ContainsFunc(remedies, func(key string) bool { return strings.Contains(n.refused.Error(), key) }) {
				s.t.Errorf("%s is refused without a remedy: %v", n.name, n.refused)
			}
			continue
		}
		going[letter]++
		if !p.ownStreams && !p.shared && letter == "a" {
			// two writers of one cluster on a stream that is not shared are found, and nothing more is promised
			continue
		}
		want := existing(history(letter, n.lives))
		if !slices.ContainsFunc(slices.Collect(maps.Keys(states)), func(key string) bool {
			return strings.HasSuffix(key, letter) && maps.Equal(states[key], want)
		}) {
			s.t.Errorf("%s went on, and no stream has what its cluster has, %v; they have %v", n.name, slices.Sorted(maps.Keys(want)), states)
		}
	}
	if going["a"] == 0 && (!p.atOnce || going["b"] == 0) { // whoever begins is not ended by those that come later
		s.t.Errorf("nobody goes on: %v, %v", s.neighbours[0].refused, s.neighbours[1].refused)
	}
	right := p.ownStreams || p.shared && !p.same
	for _, n := range s.neighbours {
		if right && n.refused != nil && (p.shared || p.ownStreams) {
			s.t.Errorf("%s has right settings, and is refused: %v", n.name, n.refused)
		}
	}
	if p.shared && !p.ownStreams && going["a"] == 2 {
		for id, times := range count {
			if id.Cluster[:1] == "a" && times != 2 {
				s.t.Errorf("%s is stored %d times by two exporters", id, times)
			}
		}
	}
}
