package config

import (
	"strings"
	"time"
)

// minInterval keeps an exporter from being a burden.
const minInterval = Duration(time.Second)

func (k *checker) discovery(d *Discovery) {
	if d.Interval < minInterval {
		k.problem("discovery.interval", "want %s or more, have %s", minInterval, d.Interval)
	}
}

// exclusions finds what leaves nothing out, or cannot be known to.
func (k *checker) exclusions(path string, r *Resource) {
	k.namespaces(path+".excludeNamespaces", r.ExcludeNamespaces)
	if len(r.Namespaces) > 0 && len(r.ExcludeNamespaces) > 0 {
		k.problem(path+".excludeNamespaces", "namespaces are chosen already; leave one of the two out")
	}
	if len(r.Exclude) > 0 && !isWildcard(r.Name) {
		k.problem(path+".exclude", "%s is one resource; only of * and *.GROUP something can be left out", shorten(r.Name))
	}
	for j, name := range r.Exclude {
		if err := CheckResource(name); err != nil {
			k.problem(item(path+".exclude", j), "%v", err)
		} else if name == "*" || name == r.Name {
			k.problem(item(path+".exclude", j), "%s leaves nothing; leave the whole entry out", name)
		}
	}
}

func isWildcard(name string) bool { return name == "*" || strings.HasPrefix(name, "*.") }

// Excludes says whether the resource, by kubectl's full name, "pods" or "deployments.apps", is left out.
func (r *Resource) Excludes(name string) bool {
	_, group, _ := strings.Cut(name, ".")
	for _, excluded := range r.Exclude {
		if excluded == name || group != "" && excluded == "*."+group {
			return true
		}
	}
	return false
}
