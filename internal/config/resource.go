package config

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Resource chooses objects. In a file it is a string, the name alone, or a mapping.
type Resource struct {
	Name       string   // as kubectl writes it: "pods", "deployments.apps", "*.cert-manager.io", "*"
	Namespaces []string // none is all
	// What is left out: of all namespaces these, and of a wildcard's resources those of these names.
	ExcludeNamespaces []string
	Required          bool     // a custom resource must be installed when the exporter starts
	Exclude           []string // as kubectl writes them in full: "events", "leases.coordination.k8s.io", "*.metrics.k8s.io"

	LabelSelector string
	FieldSelector string

	// What of the selected goes on. Paths are a subset of kubectl's JSONPath, and the filter is an expression in CEL;
	// both are for others to parse.
	Ops           []string  // of Ops; none is all
	Filter        string    // "" is all
	FilterFailure string    // one of filterFailures, what becomes of a record whose filter fails
	Before        bool      // keep each object, so that the next record says how it was
	Changes       bool      // records say what differs from that
	Actor         bool      // records say who changed the object last
	Involved      []string  // of involvables: what records of Events say of the object that they are about
	Ignore        []string  // paths, and names of IgnoreLists: an update that differs in nothing else is not told
	Keep          []string  // of keepables, what is left in although it is cut by default
	Only          []string  // paths of what is left in; none is all
	Drop          []string  // paths of what is left out
	Redact        Redaction // what becomes keyed hashes
	RedactEnv     []string  // patterns of environment variables whose values do
}

func (r *Resource) keys() []key {
	return []key{
		{"resource", text(&r.Name),
			"Needed. As kubectl names it: `pods`, `po`, `deployments.apps`; `*.cert-manager.io` is a group, `*` is " +
				"everything except Secrets."},
		{"namespaces", list(&r.Namespaces), "Namespaces to watch, each by a watch of its own. Without it, all."},
		{"required", flag(&r.Required),
			"Do not start while the API server does not serve the resource. Without it, a custom resource in its full " +
				"name, `PLURAL.GROUP`, may be installed later; not for wildcards."},
		{"excludeNamespaces", list(&r.ExcludeNamespaces),
			"Namespaces to leave out of all; not together with `namespaces`."},
		{"exclude", list(&r.Exclude),
			"What a wildcard leaves out: full names, or `*.GROUP`. Only for `*` and `*.GROUP`."},
		{"labelSelector", text(&r.LabelSelector),
			"The API server's label selector. An object that stops matching is reported as deleted."},
		{"fieldSelector", text(&r.FieldSelector),
			"The API server's field selector. An object that stops matching is reported as deleted."},
		{"ops", list(&r.Ops, operations()...),
			"Operations to stream. Records of a snapshot pass with `added` or `updated`. Without it, all."},
		{"filter", text(&r.Filter),
			"A CEL expression over `object`, `op` and, with `before`, `oldObject`. Changes for which it is true are " +
				"streamed. An object that stops matching is not reported as deleted. Without it, all changes are " +
				"streamed."},
		{"filterFailure", word(&r.FilterFailure, filterFailures()),
			"What happens to a record whose filter fails: it passes, or a gap record stands in its place. Without " +
				"it, `pass`."},
		{"before", flag(&r.Before),
			"Keep each object as it was delivered last, so that the next record includes it. The state grows by " +
				"about half of the objects' JSON."},
		{"changes", flag(&r.Changes),
			"Records say by JSON Pointers what has changed ([what that means](resources.md#what-changed)). Needs `before`."},
		{"actor", flag(&r.Actor),
			"Records name the field managers that changed the object last ([what that means](resources.md#field-managers))."},
		{"involved", list(&r.Involved, involvables()...),
			"Only for Events: what records say of the object that the Event is about, as it was told last ([what that " +
				"means](resources.md#events-with-labels)). Needs `before` in the resources of such objects."},
		{"ignore", list(&r.Ignore),
			"Paths, and the name `heartbeats`. An update that differs in nothing else from what was told last is not " +
				"told ([what that means](resources.md#updates-that-do-not-matter)). Objects are kept for it as with `before`."},
		{"keep", list(&r.Keep, keepables()...),
			"What is kept although it is cut by default: `metadata.managedFields`, and kubectl's last-applied " +
				"annotation."},
		{"only", list(&r.Only),
			"Paths, as in kubectl's JSONPath, to keep beside apiVersion, kind and identity. Without it, everything."},
		{"drop", list(&r.Drop), "Paths to leave out."},
		{"redact", redaction(&r.Redact),
			"Paths whose values become keyed hashes. The values of Secrets and of their annotations always do, " +
				"unless this is `none`."},
		{"redactEnv", list(&r.RedactEnv),
			"Patterns of environment variables, such as `*PASSWORD*`, whose values become keyed hashes, in each list " +
				"or map that is called `env`. `*` is any text and `?` any character, slashes too."},
	}
}

func readResource(d *decoder, path string, n *yaml.Node, r *Resource) {
	switch {
	case n == nil || n.Kind == yaml.ScalarNode:
		d.required(path, n, text(&r.Name))
	case n.Kind == yaml.SequenceNode:
		d.mismatch(path, n, "a resource such as pods or {resource: pods, namespaces: [shop]}")
	default:
		d.mapping(path, n, r.keys())
		if d.settled[under(path, "resource")] {
			d.settled[path] = true // where check would miss the name
		}
	}
}

// orName says that an item of the list may be a name alone.
func (v value) orName() value {
	v.schema["items"] = Schema{"anyOf": []any{Schema{"type": "string", "minLength": 1}, v.schema["items"]}}
	return v
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

func redaction(target *Redaction) value {
	paths := list(&target.Paths)
	return value{
		kind:   "list of strings, or `none`",
		schema: Schema{"anyOf": []any{Schema{"const": noRedaction}, paths.schema}},
		read: func(d *decoder, path string, n *yaml.Node) {
			if n == nil || n.Kind == yaml.SequenceNode {
				paths.read(d, path, n)
				return
			}
			var word string
			text(&word).read(d, path, n)
			if target.None = word == noRedaction; !target.None && !d.settled[path] {
				d.problem(path, "want a list of paths such as [.spec.token], or none")
			}
		},
		show: func() any {
			if !target.None && len(target.Paths) == 0 {
				return nil
			}
			return *target
		},
	}
}

func (r *Resource) check(k *checker, path string) {
	if err := CheckResource(r.Name); err != nil {
		k.problem(path, "%v", err)
	}
	if r.FilterFailure != "" && r.Filter == "" {
		k.problem(path+".filterFailure", "there is no filter that could fail; add filter, or leave it out")
	}
	checkNamespaces(k, path+".namespaces", r.Namespaces)
	if r.Changes && !r.Before {
		k.problem(path+".changes", "what was before is not kept, so nobody knows what changed; add before: true, or leave it out")
	}
	r.checkIgnore(k, path+".ignore")
	r.checkExclusions(k, path)
}

func checkNamespaces(k *checker, path string, namespaces []string) {
	for j, namespace := range namespaces {
		if err := CheckNamespace(namespace); err != nil {
			k.problem(item(path, j), "%v", err)
		}
	}
}

// checkIgnore takes paths, which are for others to parse, and names of lists.
func (r *Resource) checkIgnore(k *checker, path string) {
	for j, text := range r.Ignore {
		if !isIgnoreList(text) && !strings.HasPrefix(text, ".") && !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "$") {
			k.problem(item(path, j), "want a path such as .status.conditions[*].lastHeartbeatTime, or the name of a list, which is %s, have %q",
				strings.Join(ignoreLists(), " or "), shorten(text))
		}
	}
}

// isIgnoreList says whether the text is the name of a list of paths.
func isIgnoreList(text string) bool { return slices.Contains(ignoreLists(), text) }

// checkExclusions finds what leaves nothing out, or cannot be known to.
func (r *Resource) checkExclusions(k *checker, path string) {
	checkNamespaces(k, path+".excludeNamespaces", r.ExcludeNamespaces)
	if len(r.Namespaces) > 0 && len(r.ExcludeNamespaces) > 0 {
		k.problem(path+".excludeNamespaces", "namespaces are chosen already; leave one of the two out")
	}
	if r.Required && isWildcard(r.Name) {
		k.problem(path+".required", "%s may stand for nothing; leave it out", shorten(r.Name))
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
	if plural != "*" && !consistsOf(plural, lower+digits+"-") || grouped && !isGroup(group) {
		return fmt.Errorf("%q cannot be a resource; write it as kubectl does: pods, deployments.apps, *.cert-manager.io or *", shorten(name))
	}
	return nil
}

func isGroup(group string) bool {
	return consistsOf(group, lower+digits+"-.") && !slices.Contains(strings.Split(group, "."), "")
}

// WithholdsFailed says whether a record whose filter fails becomes a dead letter, for which a gap record stands.
func (r *Resource) WithholdsFailed() bool { return r.FilterFailure == withholdFailed }
