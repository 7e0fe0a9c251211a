package sim

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
)

// changes are the worlds in which the configuration is not the same in all lives: "" is none, "streams" those in which
// whole streams leave and come back, and "namespaces" those as well in which a resource is configured for all
// namespaces in one life, and for some in another.
const changes = "namespaces"

// namespaces are those of the keys.
func namespaces() []string { return []string{"a", "a-b", "a.b", "m"} }

// chosen are the namespaces of which the resource is configured; nil is none, and "" is all.
func (l lifeSpec) chosen(resource string) []string {
	text := map[string]string{pods: l.Pods, events: l.Events}[resource]
	if text == "-" {
		return nil
	}
	return strings.Split(text, ",")
}

// streams are those that are configured.
func (l lifeSpec) streams() (all []change.Stream) {
	for _, resource := range []string{pods, events} {
		for _, namespace := range l.chosen(resource) {
			of := change.Resource{Version: "v1", Name: resource, Kind: kindOf(resource)}
			all = append(all, change.Stream{Resource: of, Namespace: namespace})
		}
	}
	return all
}

// covers says whether a configured stream has the object.
func (l lifeSpec) covers(resource, key string) bool {
	namespace, _, _ := strings.Cut(key, "/")
	return slices.ContainsFunc(l.chosen(resource), func(n string) bool { return n == "" || n == namespace })
}

// changes says whether other streams of the resource are configured in some life than in another.
func (s script) changes(resource string) bool {
	first := s.Lives[0].chosen(resource)
	return slices.ContainsFunc(s.Lives, func(l lifeSpec) bool { return !slices.Equal(first, l.chosen(resource)) })
}

// configuration says how the configuration of a script's streams changes.
func configurationOf(seed uint64) string {
	g := generator{Rand: rand.New(rand.NewPCG(seed, 8000))}
	switch n := g.IntN(100); {
	case n < 70:
		return ""
	case n < 76 || *changesFlag == "":
		return "same"
	case n < 88 || *changesFlag == "streams":
		return "streams"
	}
	return "namespaces"
}

// configure says in each life what is configured. It chooses by a source of its own.
func (g generator) configure(s *script, how string) {
	for range g.IntN(3) {
		l := g.life(s.Sinks, 0, false)
		l.Sinks = s.Lives[0].Sinks
		s.Lives = slices.Insert(s.Lives, 0, l)
	}
	bases := [2][]string{g.some(), g.some()}
	for i := range s.Lives {
		l := &s.Lives[i]
		for l.Pods, l.Events = "-", "-"; l.Pods == "-" && l.Events == "-"; {
			switch how {
			case "same":
				l.Pods, l.Events = listed(bases[0]), listed(bases[1])
			case "streams":
				l.Pods, l.Events = listed(g.part(bases[0])), listed(g.part(bases[1]))
			default:
				l.Pods, l.Events = listed(g.part(g.some())), listed(g.part(g.some()))
			}
		}
	}
}

// listed is the text of the namespaces in a script.
func listed(namespaces []string) string {
	if len(namespaces) == 0 {
		return "-"
	}
	return strings.Join(namespaces, ",")
}

// some are namespaces, or all.
func (g generator) some() []string {
	if g.chance(40) {
		return []string{""}
	}
	all := namespaces()
	g.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:1+g.IntN(len(all))]
}

// part are some of them, most often all.
func (g generator) part(all []string) (part []string) {
	for _, one := range all {
		if g.chance(70) {
			part = append(part, one)
		}
	}
	return part
}
