package config

import (
	"slices"
	"strings"
)

// IsKept says whether the entry's objects are kept as they were told last.
func (r *Resource) IsKept() bool { return r.Before || len(r.Ignore) > 0 }

// isEvents says whether the name stands for Events, as kubectl takes it: events, ev, events.events.k8s.io.
func isEvents(name string) bool {
	plural, group, _ := strings.Cut(name, ".")
	if !slices.Contains([]string{"events", "event", "ev"}, plural) {
		return false
	}
	return group == "" || group == "v1" || group == "events.k8s.io" || strings.HasSuffix(group, ".events.k8s.io")
}

// Involvable are the entries of whose objects an Event may tell: those that are kept.
func Involvable(resources []Resource) (involvable []*Resource) {
	for i := range resources {
		if r := &resources[i]; r.IsKept() && !isEvents(r.Name) {
			involvable = append(involvable, r)
		}
	}
	return involvable
}

// checkInvolved checks that something is known of what Events are about, and that no Event tells a sink of an object
// that the sink may not see.
func checkInvolved(k *checker, resources []Resource, sinks []Sink) {
	known := &involvedChecker{k, Involvable(resources)}
	for i := range resources {
		if len(resources[i].Involved) > 0 && known.entry(item("resources", i)+".involved", &resources[i]) {
			for j := range sinks {
				known.sink(item("sinks", j), &sinks[j], &resources[i])
			}
		}
	}
}

// involvedChecker checks what Events tell of the objects that they are about.
type involvedChecker struct {
	*checker
	kept []*Resource // the entries of these objects
}

// entry says whether the entry is one of Events.
func (c *involvedChecker) entry(path string, r *Resource) bool {
	switch {
	case !isEvents(r.Name):
		c.problem(path, "an object of %s is about no other one; leave it out, or put it at events", shorten(r.Name))
		return false
	case len(c.kept) == 0:
		c.problem(path, "no object is kept that an Event could be about; add before: true to its resource, such as pods, or leave it out")
	}
	return true
}

// sink checks a sink that takes the Events. It must take the objects of all kept entries, each as its entry leaves it:
// a sink's cuts apply to what an Event tells, too, but nobody knows whether a filter would have let the object pass
// that an Event is about.
func (c *involvedChecker) sink(path string, s *Sink, events *Resource) {
	takes := func(name string) bool { return len(s.Resources) == 0 || slices.Contains(s.Resources, name) }
	if !takes(events.Name) && !slices.ContainsFunc(s.Resources, isWildcard) {
		return
	}
	const orLeave = ", or leave involved out of the events"
	for _, r := range c.kept {
		if !takes(r.Name) {
			c.problem(path+".resources", "its events would tell it of %s, which it does not take; add %s%s", shorten(r.Name), shorten(r.Name), orLeave)
		}
	}
	if s.Filter != "" {
		c.problem(path+".filter", "its events would tell it of objects that the filter leaves out; put the filter at the resources%s", orLeave)
	}
	if len(s.Ops) > 0 && !(slices.Contains(s.Ops, "added") && slices.Contains(s.Ops, "updated")) {
		c.problem(path+".ops", "its events would tell it of objects that it is not told of; add added and updated%s", orLeave)
	}
}
