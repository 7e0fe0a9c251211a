package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

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
		e := &entriesChecker{k, resources}
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
	e.checker.problem(path, r.Name+" "+format, args...)
	e.settled[path] = true
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
		if !e.settled[e.path(last)] {
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
	one, other := reflect.ValueOf(r).Elem(), reflect.ValueOf(last).Elem()
	for _, f := range fieldsOf(one.Type()) {
		if f.Tag.Get("entries") == "alike" && !bytes.Equal(f.written(one.FieldByIndex(f.Index)), f.written(other.FieldByIndex(f.Index))) {
			e.problem(last, "."+f.name, "has another one in %s; all entries of a resource have the same; write it alike", e.path(r))
		}
	}
}

// Resource chooses objects. In a file it is a string, the name alone, or a mapping.
type Resource struct {
	Name       string   `key:"resource"`
	Namespaces []string `key:"namespaces" like:"namespace"`
	Required   bool     `key:"required"`
	Task       int      `key:"task" min:"1"` // that has it, of several; 0 is that hashing says which
	// What is left out: of all namespaces these, and of a wildcard's resources those of these names.
	ExcludeNamespaces []string `key:"excludeNamespaces" like:"namespace"`
	Exclude           []string `key:"exclude" like:"resource"`

	LabelSelector string `key:"labelSelector"`
	FieldSelector string `key:"fieldSelector" entries:"alike"`

	// What of the selected goes on. Paths are a subset of kubectl's JSONPath, and the filter is an expression in CEL;
	// both are for others to parse.
	Ops           []string  `key:"ops" of:"added updated deleted" effect:"new"`
	Filter        string    `key:"filter" effect:"next"`
	FilterFailure string    `key:"filterFailure" of:"pass deadletter" effect:"new"`
	Before        bool      `key:"before" entries:"alike" effect:"second"`
	Changes       bool      `key:"changes" entries:"alike" effect:"second"`
	Actor         bool      `key:"actor" entries:"alike" effect:"new"`
	Involved      []string  `key:"involved" entries:"alike" of:"labels ownerReferences" effect:"new"`
	Ignore        []string  `key:"ignore" entries:"alike" effect:"next"`
	Keep          []string  `key:"keep" entries:"alike" of:"managedFields lastApplied" effect:"next"`
	Only          []string  `key:"only" effect:"shape"`
	Drop          []string  `key:"drop" effect:"shape"`
	Redact        Redaction `key:"redact" effect:"shape"`
	RedactEnv     []string  `key:"redactEnv" effect:"shape"`

	of Task // whose configuration it is of
}

// IsOurs says whether the task whose configuration it is has the resource, by kubectl's full name, that the entry
// stands for.
func (r *Resource) IsOurs(resource string) bool {
	return r.of.Count == 0 || r.Owner(resource) == r.of.Number
}

// Owner is the number of the task that has the resource, 0 where there are no tasks. Rendezvous hashing moves as few
// resources as it can when the number of tasks changes.
func (r *Resource) Owner(resource string) int {
	if r.Task != 0 || r.of.Count == 0 {
		return r.Task
	}
	best, most := 0, uint64(0)
	for n := 1; n <= r.of.Count; n++ {
		hash := sha256.Sum256([]byte(resource + "/" + strconv.Itoa(n)))
		if score := binary.BigEndian.Uint64(hash[:]); score > most {
			best, most = n, score
		}
	}
	return best
}

// read takes a name alone, too.
func (r *Resource) read(d *decoder, path string, n *yaml.Node) {
	switch {
	case n == nil || n.Kind == yaml.ScalarNode:
		d.required(path, n, &r.Name)
	case n.Kind == yaml.SequenceNode:
		d.mismatch(path, n, "a resource such as pods or {resource: pods, namespaces: [shop]}")
	default:
		d.section(path, n, reflect.ValueOf(r).Elem())
		if d.settled[under(path, "resource")] {
			d.settled[path] = true // where check would miss the name
		}
	}
}

// Redaction says which values become keyed hashes. In a file it is a list of paths, or the word none, which lets even
// Secrets go out bare.
type Redaction struct {
	None  bool
	Paths []string
}

const noRedaction = "none"

// MarshalJSON writes the redaction as a file has it.
func (r Redaction) MarshalJSON() ([]byte, error) {
	if r.None {
		return json.Marshal(noRedaction)
	}
	return json.Marshal(r.Paths)
}

func (r *Redaction) read(d *decoder, path string, n *yaml.Node) {
	if n == nil || n.Kind == yaml.SequenceNode {
		d.list(path, n, reflect.ValueOf(&r.Paths).Elem())
		return
	}
	word, _ := d.word(path, n, "a string", true)
	if r.None = word == noRedaction; !r.None && !d.settled[path] {
		d.refuse(path, "want a list of paths such as [.spec.token], or none")
	}
}

func (r *Resource) check(k *checker, path string) {
	k.wrong(path, CheckResource(r.Name))
	k.problemIf(r.FilterFailure != "" && r.Filter == "", path+".filterFailure",
		"there is no filter that could fail; add filter, or leave it out")
	const empty = "the list is empty; name some, or leave it out" // a template may have lost its values
	k.problemIf(r.Namespaces != nil && len(r.Namespaces) == 0, path+".namespaces", empty)
	k.problemIf(r.Changes && !r.Before, path+".changes",
		"what was before is not kept, so nobody knows what changed; add before: true, or leave it out")
	for j, text := range r.Ignore { // paths, which are for others to parse, and names of lists
		if text != IgnoreHeartbeats && !strings.ContainsAny(text[:min(len(text), 1)], ".{$") {
			k.problem(item(path+".ignore", j), "want a path such as .status.conditions[*].lastHeartbeatTime, or the name of a list, which is %s, have %q",
				IgnoreHeartbeats, shorten(text))
		}
	}
	// What leaves nothing out, or cannot be known to.
	k.problemIf(r.ExcludeNamespaces != nil && len(r.ExcludeNamespaces) == 0, path+".excludeNamespaces", empty)
	k.problemIf(len(r.Namespaces) > 0 && len(r.ExcludeNamespaces) > 0, path+".excludeNamespaces",
		"namespaces are chosen already; leave one of the two out")
	k.problemIf(r.Required && isWildcard(r.Name), path+".required", "%s may stand for nothing; leave it out", shorten(r.Name))
	k.problemIf(len(r.Exclude) > 0 && !isWildcard(r.Name), path+".exclude",
		"%s is one resource; only of * and *.GROUP something can be left out", shorten(r.Name))
	for j, name := range r.Exclude {
		k.problemIf(name == "*" || name == r.Name, item(path+".exclude", j), "%s leaves nothing; leave the whole entry out", name)
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

// CheckNamespace takes what a namespace may be called. Whether it is there is not known here.
func CheckNamespace(name string) error {
	if !consistsOf(name, lower+digits+"-") {
		return fmt.Errorf("%q cannot be a namespace; want lower case letters, digits and -", shorten(name))
	}
	return nil
}

// CheckResource takes what kubectl takes: pods, deployments.apps, deployments.v1.apps, and with * for every name,
// *.apps and *. Whether it is served is not known here.
func CheckResource(name string) error {
	plural, group, grouped := strings.Cut(name, ".")
	isGroup := consistsOf(group, lower+digits+"-.") && !slices.Contains(strings.Split(group, "."), "")
	if plural != "*" && !consistsOf(plural, lower+digits+"-") || grouped && !isGroup {
		return fmt.Errorf("%q cannot be a resource; write it as kubectl does: pods, deployments.apps, *.cert-manager.io or *", shorten(name))
	}
	return nil
}
