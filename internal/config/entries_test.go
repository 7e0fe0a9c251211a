package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestSeveralEntriesOfAResource(t *testing.T) {
	for _, c := range []struct {
		name, entries string // of pods, a line each, from line 2 on
		want          string // "" is none
	}{
		{"the rest behind a namespace", "namespaces: [a]\n", ""},
		{"the rest behind labels", "labelSelector: x\n", ""},
		{"labels of a namespace", "{namespaces: [a], labelSelector: x}\nnamespaces: [a]\n\n", ""},
		{"namespaces apart", "namespaces: [a]\nnamespaces: [b]", ""},
		{"all but one, and that", "excludeNamespaces: [a]\n", ""},
		{"the same labels of namespaces", "{namespaces: [a], labelSelector: x}\nlabelSelector: x", ""},

		{"the same twice", "\n", "resources[1] (line 3): pods is named already in resources[0]; list all its namespaces there, or put this one first"},
		{"a namespace behind all", "\nnamespaces: [a]", "resources[1] (line 3): pods is named already in resources[0]; list all its namespaces there, or put this one first"},
		{"a namespace twice", "namespaces: [a, b]\nnamespaces: [b, c]", "resources[1] (line 3): pods is named already in resources[0]; list all its namespaces there, or put this one first"},
		{"the same labels", "labelSelector: x\nlabelSelector: x", "resources[1] (line 3): pods is named already in resources[0]; list all its namespaces there, or put this one first"},
		{"nothing left of what is excluded", "excludeNamespaces: [a]\nexcludeNamespaces: [a]", "resources[1] (line 3): pods is named already in resources[0]; list all its namespaces there, or put this one first"},
		{"of all namespaces before one", "labelSelector: x\nnamespaces: [a]", "resources[1] (line 3): pods is of all namespaces in resources[0]; put that last"},
		{"other labels", "labelSelector: x\nlabelSelector: z", "resources[1].labelSelector (line 3): pods has another one in resources[0]; the last entry of a resource chooses for all of them: leave it out here"},
		{"labels of the rest", "namespaces: [a]\nlabelSelector: z", "resources[1].labelSelector (line 3): pods has another one in resources[0]; the last entry of a resource chooses for all of them: leave it out here"},
		{"exclusions of the rest", "namespaces: [a, b]\nexcludeNamespaces: [c, b]", "resources[1].excludeNamespaces (line 3): pods of namespace b is in resources[0]; the last entry of a resource chooses for all of them: leave it out here"},
		{"fields", "{namespaces: [a], fieldSelector: spec.nodeName=x}\n", "resources[1].fieldSelector (line 3): pods has another one in resources[0]; all entries of a resource have the same; write it alike"},
		{"kept objects", "{namespaces: [a], before: true}\n", "resources[1].before (line 3): pods has another one in resources[0]; all entries of a resource have the same; write it alike"},
		{"what changed", "{namespaces: [a], before: true, changes: true}\nbefore: true", "resources[1].changes (line 3): pods has another one in resources[0]; all entries of a resource have the same; write it alike"},
		{"who changed it", "{namespaces: [a], actor: true}\n", "resources[1].actor (line 3): pods has another one in resources[0]; all entries of a resource have the same; write it alike"},
		{"what is ignored", "{namespaces: [a], ignore: [.status]}\n", "resources[1].ignore (line 3): pods has another one in resources[0]; all entries of a resource have the same; write it alike"},
		{"kept fields", "namespaces: [a]\nkeep: [managedFields]", "resources[1].keep (line 3): pods has another one in resources[0]; all entries of a resource have the same; write it alike"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := "resources:\n"
			for line := range strings.SplitSeq(strings.TrimSuffix(c.entries, "\n\n"), "\n") {
				if line = strings.Trim(line, "{}"); line != "" {
					line = ", " + line
				}
				text += fmt.Sprintf("- {resource: pods%s}\n", line)
			}
			_, err := Parse("c.yaml", []byte(text), testEnv)
			if c.want == "" && err == nil {
				return
			}
			wantError(t, err, "configuration c.yaml: "+c.want)
		})
	}
	_, err := Parse("c.yaml", []byte("resources:\n- {resource: pods, before: true}\n- {resource: ev, namespaces: [a], involved: [labels]}\n- ev\n"), testEnv)
	wantError(t, err, "configuration c.yaml: resources[2].involved (line 4): ev has another one in resources[1]; all entries of a resource have the same; write it alike")
	_, err = Parse("c.yaml", []byte(`resources: ["*", {resource: "*", namespaces: [a]}]`), testEnv)
	wantError(t, err, "configuration c.yaml: resources[1] (line 1): * is named already in resources[0]; a wildcard has one entry, a single resource may have several")
}

func TestPartsOfAResource(t *testing.T) {
	entries := func(namespaces ...string) (all []*Resource) {
		for _, one := range namespaces {
			all = append(all, &Resource{Name: one, Namespaces: strings.Fields(one)})
		}
		return all
	}
	for _, c := range []struct {
		entries []*Resource
		want    []string
	}{
		{entries(""), []string{": "}},
		{entries("a b"), []string{"a: a b", "b: a b"}},
		{entries("a", "b a", "c"), []string{"a: a|b a", "b: b a", "c: c"}},
		{entries("a", "b", ""), []string{": a|b|"}},
		{nil, nil},
	} {
		var got []string
		for _, part := range PartsOf(c.entries) {
			var names []string
			for _, r := range part.Entries {
				names = append(names, r.Name)
			}
			got = append(got, part.Namespace+": "+strings.Join(names, "|"))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
