package control

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Stream is a stream and what it is called beside its name.
type Stream struct {
	Name  string   // "pods", "deployments.apps", "shop/secrets"
	Alias []string // in lower case
}

// Resolve finds the streams that names stand for; no names stand for all. A name is a stream's, one of its aliases, or
// its resource as kubectl writes it: "deployments.apps", "apps/deployments", and "deployments" where that is of one
// group only. Every name that stands for nothing is in the error, a *RefusedError.
func Resolve(streams []Stream, names []string) ([]string, error) {
	if len(names) == 0 {
		return distinct(streams, nameOf), nil
	}
	var found, unknown []string
	for _, name := range names {
		meant, exact := resolveOne(streams, strings.ToLower(name))
		if groups := distinct(meant, func(s Stream) string { return resourceOf(s.Name) }); !exact && len(groups) > 1 {
			return nil, &RefusedError{Text: fmt.Sprintf("resource %q is one of %s: say which", name, strings.Join(groups, ", "))}
		}
		if len(meant) == 0 {
			unknown = append(unknown, strconv.Quote(name))
		}
		for _, stream := range meant {
			found = append(found, stream.Name)
		}
	}
	if len(unknown) > 0 {
		return nil, &RefusedError{Text: fmt.Sprintf("no stream of %s; %s", strings.Join(unknown, ", "), thereAre(distinct(streams, nameOf)))}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// Match finds the streams that a name stands for, as Resolve does, or a regular expression of whole names, in any case.
// It is a *RefusedError if there is none.
func Match(streams []Stream, pattern string) ([]string, error) {
	found, unknown := Resolve(streams, []string{pattern})
	if unknown == nil {
		return found, nil
	}
	expression, err := regexp.Compile("(?i)" + pattern)
	if err != nil {
		return nil, &RefusedError{Text: fmt.Sprintf("%.100q is neither a resource nor a regular expression: %v", pattern, err)}
	}
	expression.Longest() // so that what it finds is all of a name, where it can be
	for _, stream := range streams {
		if resource := resourceOf(stream.Name); expression.FindString(stream.Name) == stream.Name || expression.FindString(resource) == resource {
			found = append(found, stream.Name)
		}
	}
	if len(found) == 0 {
		return nil, unknown
	}
	return found, nil
}

// resolveOne prefers whole names: "events" is the core group's, although another group has events, too.
func resolveOne(streams []Stream, name string) (meant []Stream, isExact bool) {
	var exact, loose []Stream
	for _, stream := range streams {
		resource := resourceOf(stream.Name)
		plural, group, _ := strings.Cut(resource, ".")
		switch {
		case name == stream.Name, name == resource, group != "" && name == group+"/"+plural, slices.Contains(stream.Alias, name):
			exact = append(exact, stream)
		case name == plural:
			loose = append(loose, stream)
		}
	}
	if len(exact) > 0 {
		return exact, true
	}
	return loose, false
}

func nameOf(s Stream) string { return s.Name }

// distinct are the names of streams, or of their resources, in order and each once.
func distinct(streams []Stream, name func(Stream) string) []string {
	var names []string
	for _, stream := range streams {
		names = append(names, name(stream))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func thereAre(names []string) string {
	if len(names) == 0 {
		return "there are none"
	}
	return "there are: " + strings.Join(names, ", ")
}

// ResolveSink returns the sinks that a name stands for: itself, or all with "".
func ResolveSink(sinks []string, name string) ([]string, error) {
	switch {
	case name == "":
		return sinks, nil
	case slices.Contains(sinks, name):
		return []string{name}, nil
	}
	return nil, &RefusedError{Text: fmt.Sprintf("no sink %q; %s", name, thereAre(slices.Sorted(slices.Values(sinks))))}
}
