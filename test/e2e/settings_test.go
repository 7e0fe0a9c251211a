package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// settings are one configuration of an exporter that is configured anew between its starts. Rules, selector and
// namespaces are those of config maps.
type settings struct {
	namespaces []string // nil is all
	selector   string
	rule       string // what becomes of the writer's mark: "", "redact" or "drop"
	sinks      []sinkSettings
}

// sinkSettings are those of one sink.
type sinkSettings struct {
	name  string
	queue string
	all   bool // it takes all resources, and otherwise config maps alone
}

// The sinks that are configured, if they are.
const (
	sinkFile = "file"
	sinkBus  = "bus"
	sinkPool = "pool"
)

// The topics of the sink in Kafka are created with so many partitions.
const (
	poolPrefix     = "pool."
	poolPartitions = 2
)

// whole is everything, everywhere, as it is.
func whole(sinks []string) *settings {
	s := new(settings)
	for _, name := range sinks {
		s.sinks = append(s.sinks, sinkSettings{name: name, queue: "{}", all: true})
	}
	return s
}

// places are the namespaces of the objects.
func places() []string { return []string{"shop", "shop-2", "mall", "attic"} }

// plan makes settings at random.
type plan struct {
	random *rand.Rand
	sinks  []string // that there may be
	queues []string // of the sinks
}

// newPlan makes queues that merge records in every other world only, since what is merged is judged less strictly.
func newPlan(seed uint64, sinks ...string) *plan {
	p := &plan{random: rand.New(rand.NewPCG(seed, 77)), sinks: sinks, queues: []string{"{}", "{records: 8, full: spool}", "{records: 8}"}}
	if seed%2 == 0 {
		p.queues = append(p.queues, coalescing)
	}
	return p
}

const coalescing = "{records: 8, full: coalesce}"

func (p *plan) pick(of ...string) string { return of[p.random.IntN(len(of))] }

// change makes the next settings of the present ones: each part changes now and then.
func (p *plan) change(now *settings) *settings {
	next := *now
	if p.random.IntN(2) == 0 {
		next.selector = p.pick("", "", "app=web", "app!=web", "app in (web,db)", "app=db")
	}
	if p.random.IntN(2) == 0 {
		next.rule = p.pick("", "redact", "drop")
	}
	if p.random.IntN(2) == 0 {
		next.namespaces = p.someNamespaces()
	}
	if p.random.IntN(2) == 0 {
		next.sinks = p.someSinks()
	}
	return &next
}

// someNamespaces are all half of the time.
func (p *plan) someNamespaces() []string {
	if p.random.IntN(2) == 0 {
		return nil
	}
	return p.some(places())
}

// some are one or more.
func (p *plan) some(of []string) []string {
	p.random.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
	return slices.Sorted(slices.Values(of[:1+p.random.IntN(len(of))]))
}

func (p *plan) someSinks() (sinks []sinkSettings) {
	for _, name := range p.some(slices.Clone(p.sinks)) {
		sinks = append(sinks, sinkSettings{name: name, queue: p.pick(p.queues...), all: p.random.IntN(4) > 0})
	}
	return sinks
}

// text is the configuration. The destinations are the sinks' own part, by name.
func (s *settings) text(destinations map[string]string) string {
	var text strings.Builder
	text.WriteString("resources:\n- {resource: configmaps")
	if len(s.namespaces) > 0 {
		fmt.Fprintf(&text, ", namespaces: [%s]", strings.Join(s.namespaces, ", "))
	}
	if s.selector != "" {
		fmt.Fprintf(&text, ", labelSelector: %q", s.selector)
	}
	if s.rule != "" {
		fmt.Fprintf(&text, `, %s: [".metadata.annotations['%s']"]`, s.rule, markAnnotation)
	}
	text.WriteString("}\n- widgets.example.com\nsinks:\n")
	for _, sink := range s.sinks {
		taken := "configmaps, widgets.example.com"
		if !sink.all {
			taken = "configmaps"
		}
		fmt.Fprintf(&text, "- {name: %s, %s, queue: %s, resources: [%s]}\n", sink.name, destinations[sink.name], sink.queue, taken)
	}
	return text.String()
}

// label is one that the selector selects.
func (s *settings) label() string {
	if s.selector == "app!=web" || s.selector == "app=db" {
		return "db"
	}
	return "web"
}

// sink is how the sink is configured; nil is not at all.
func (s *settings) sink(name string) *sinkSettings {
	for i := range s.sinks {
		if s.sinks[i].name == name {
			return &s.sinks[i]
		}
	}
	return nil
}

// gives says whether the sink is given the object's changes, if its labels are selected.
func (s *settings) gives(sink, kind, namespace string) bool {
	configured := s.sink(sink)
	switch {
	case configured == nil:
		return false
	case kind != "configmaps":
		return configured.all
	}
	return s.namespaces == nil || slices.Contains(s.namespaces, namespace)
}

func (s *settings) String() string {
	var sinks []string
	for _, sink := range s.sinks {
		sinks = append(sinks, fmt.Sprintf("%s %s all=%v", sink.name, sink.queue, sink.all))
	}
	return fmt.Sprintf("namespaces %v, selector %q, rule %q, sinks %s", s.namespaces, s.selector, s.rule, strings.Join(sinks, "; "))
}
