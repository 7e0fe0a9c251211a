package config

import "slices"

// EntriesOf are the entries of the name, as it is spelt, in their order.
func EntriesOf(resources []Resource, name string) (entries []*Resource) {
	for i := range resources {
		if resources[i].Name == name {
			entries = append(entries, &resources[i])
		}
	}
	return entries
}

// Part is what is watched at once of a resource, and the entries that say how.
type Part struct {
	Namespace string // "" is all
	// Entries are not empty. The first one decides of an object that takes it; the last one is what the API server
	// selects by: an object that none takes could never be told as deleted.
	Entries []*Resource
}

// PartsOf are those of one resource's entries: one of all namespaces, or one of each namespace.
func PartsOf(entries []*Resource) (parts []Part) {
	if slices.ContainsFunc(entries, (*Resource).takesAll) {
		return []Part{{"", entries}}
	}
	for _, r := range entries {
		for _, namespace := range r.Namespaces {
			others := func(r *Resource) bool { return !r.TakesNamespace(namespace) }
			if !slices.ContainsFunc(parts, func(p Part) bool { return p.Namespace == namespace }) {
				parts = append(parts, Part{namespace, slices.DeleteFunc(slices.Clone(entries), others)})
			}
		}
	}
	return parts
}

func (r *Resource) takesAll() bool { return len(r.Namespaces) == 0 }

// TakesNamespace says whether the entry is for objects of the namespace.
func (r *Resource) TakesNamespace(namespace string) bool {
	if r.takesAll() {
		return !slices.Contains(r.ExcludeNamespaces, namespace)
	}
	return slices.Contains(r.Namespaces, namespace)
}

// checkEntries checks what several entries of one resource say.
func checkEntries(k *checker, resources []Resource) {
	for i := range resources {
		all := EntriesOf(resources, resources[i].Name)
		if all[0] != &resources[i] || len(all) == 1 {
			continue
		}
		e := &entriesChecker{k, resources, map[string]bool{}}
		if isWildcard(resources[i].Name) {
			e.problem(all[1], "", "is named already in %s; a wildcard has one entry, a single resource may have several", e.path(all[0]))
			continue
		}
		for _, part := range PartsOf(all) {
			e.part(&part)
		}
	}
}

// entriesChecker checks the entries of one resource, and says of each key once what is wrong.
type entriesChecker struct {
	*checker
	resources []Resource
	said      map[string]bool
}

func (e *entriesChecker) path(r *Resource) string {
	at := 0
	for &e.resources[at] != r {
		at++
	}
	return item("resources", at)
}

func (e *entriesChecker) problem(r *Resource, key, format string, args ...any) {
	path := e.path(r) + key
	if !e.said[path] {
		e.said[path] = true
		e.checker.problem(path, r.Name+" "+format, args...)
	}
}

func (e *entriesChecker) part(p *Part) {
	last := p.Entries[len(p.Entries)-1]
	for j, r := range p.Entries {
		for _, first := range p.Entries[:j] {
			if covers(first, r, p.Namespace) {
				e.problem(r, "", "is named already in %s; list all its namespaces there, or put this one first", e.path(first))
			}
		}
	}
	for _, r := range p.Entries[:len(p.Entries)-1] {
		if r.takesAll() && !last.takesAll() {
			e.problem(last, "", "is of all namespaces in %s; put that last", e.path(r))
			continue
		}
		if !e.said[e.path(last)] {
			e.beside(r, last)
		}
	}
}

// covers says whether nothing of the part is left for a later entry.
func covers(first, later *Resource, namespace string) bool {
	if first.LabelSelector != "" && first.LabelSelector != later.LabelSelector {
		return false
	}
	switch {
	case namespace != "":
		return true
	case first.takesAll():
		return !slices.ContainsFunc(first.ExcludeNamespaces, later.TakesNamespace)
	case later.takesAll():
		return false
	}
	return slices.ContainsFunc(later.Namespaces, first.TakesNamespace)
}

// beside checks an entry beside the last one, whose selection is that of both.
func (e *entriesChecker) beside(r, last *Resource) {
	const all = "the last entry of a resource chooses for all of them: "
	if last.LabelSelector != "" && last.LabelSelector != r.LabelSelector {
		e.problem(last, ".labelSelector", "has another one in %s; %sleave it out here", e.path(r), all)
	}
	for _, namespace := range last.ExcludeNamespaces {
		if r.TakesNamespace(namespace) {
			e.problem(last, ".excludeNamespaces", "of namespace %s is in %s; %sleave it out here", namespace, e.path(r), all)
		}
	}
	sorted := func(names []string) []string { return slices.Sorted(slices.Values(names)) }
	for _, f := range []struct {
		key  string
		same bool
	}{
		{".fieldSelector", r.FieldSelector == last.FieldSelector}, {".before", r.Before == last.Before}, {".changes", r.Changes == last.Changes},
		{".actor", r.Actor == last.Actor}, {".involved", slices.Equal(sorted(r.Involved), sorted(last.Involved))},
		{".ignore", slices.Equal(sorted(r.Ignore), sorted(last.Ignore))}, {".keep", slices.Equal(sorted(r.Keep), sorted(last.Keep))},
	} {
		if !f.same {
			e.problem(last, f.key, "has another one in %s; all entries of a resource have the same; write it alike", e.path(r))
		}
	}
}
