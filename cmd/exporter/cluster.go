package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/source"
)

// cluster is the API server and what is wanted of it.
type cluster struct {
	rest *rest.Config
	name string
	uid  string
	// streams, each once: those that are configured by name, then those that a wildcard adds.
	streams []selected
	// incomplete says what the server could not tell of what a wildcard stands for; nil is nothing.
	incomplete error
}

// selected is one stream and where it came from.
type selected struct {
	stream    change.Stream
	selection source.Selection
	names     []string // the configured names that stand for it
	// configured is the entry of the configuration that says what becomes of its records.
	configured *config.Resource
}

// findCluster loads the kubeconfig.
func findCluster(f *flags, cfg *config.Config) (*cluster, error) {
	restConfig, name, err := source.LoadKubeconfig(f.kubeconfig, f.context)
	if err != nil {
		return nil, usageError{err}
	}
	restConfig.UserAgent = "kubecdc-exporter/" + version
	if cfg.Cluster != "" {
		name = cfg.Cluster
	}
	return &cluster{rest: restConfig, name: name}, nil
}

// identify asks the server who it is, and waits until it can tell what it serves.
func (c *cluster) identify(ctx context.Context) (err error) {
	if c.uid, err = source.ClusterUID(ctx, c.rest); err != nil {
		return err
	}
	return source.AwaitReady(ctx, c.rest)
}

// resolver is what resolve needs of source.Discovery.
type resolver interface {
	Resolve(name string) ([]change.Resource, error)
	Incomplete() error
}

// resolve finds the streams that the configured resources stand for. Every name that fails is in the error.
func (c *cluster) resolve(resources []config.Resource) error {
	discovery, err := source.NewDiscovery(c.rest)
	if err != nil {
		return err
	}
	return several("resources", c.resolveWith(discovery, resources)...)
}

// resolveWith takes the wildcards last: what is configured by name is read as it is configured there.
func (c *cluster) resolveWith(discovery resolver, resources []config.Resource) []error {
	var errs []error
	for _, wildcards := range []bool{false, true} {
		for i := range resources {
			if isWildcard(resources[i].Name) == wildcards {
				errs = append(errs, c.resolveOne(discovery, &resources[i])...)
			}
		}
	}
	c.incomplete = discovery.Incomplete()
	return errs
}

func (c *cluster) resolveOne(discovery resolver, configured *config.Resource) []error {
	if err := checkSelectors(configured); err != nil {
		return []error{err}
	}
	if err := checkShape(configured); err != nil {
		return []error{err}
	}
	found, err := discovery.Resolve(configured.Name)
	if err != nil {
		return []error{c.explain(err)}
	}
	if isWildcard(configured.Name) {
		return []error{c.addWildcard(found, configured)}
	}
	var errs []error
	for _, resource := range found {
		errs = append(errs, c.add(resource, configured))
	}
	return errs
}

func isWildcard(name string) bool { return strings.HasPrefix(name, "*") }

// checkSelectors finds what no server would take. Which fields a resource can be selected by, only the server knows.
func checkSelectors(configured *config.Resource) error {
	if _, err := labels.Parse(configured.LabelSelector); err != nil {
		return usageError{fmt.Errorf("resource %q: labelSelector %q: %w: write it as kubectl does, such as app=web",
			configured.Name, configured.LabelSelector, err)}
	}
	if _, err := fields.ParseSelector(configured.FieldSelector); err != nil {
		return usageError{fmt.Errorf("resource %q: fieldSelector %q: %w: write it as kubectl does, such as metadata.name=web",
			configured.Name, configured.FieldSelector, err)}
	}
	return nil
}

// explain tells a wrong name, which is the user's, from a server that does not answer.
func (c *cluster) explain(err error) error {
	var unknown *source.UnknownResourceError
	var unwatchable *source.UnwatchableError
	switch {
	case errors.As(err, &unknown) && unknown.Cause != nil:
		return source.ExplainServerError(c.rest.Host, err)
	case errors.As(err, &unknown), errors.As(err, &unwatchable):
		return usageError{err}
	}
	return source.ExplainServerError(c.rest.Host, err)
}

// add adds the resource's streams. One that several names stand for is read once.
func (c *cluster) add(resource change.Resource, configured *config.Resource) error {
	if resource.ClusterScoped && len(configured.Namespaces) > 0 {
		return usageError{fmt.Errorf("resource %q: it is cluster-scoped and has no namespaces: leave out namespaces %s",
			configured.Name, strings.Join(configured.Namespaces, ", "))}
	}
	for _, added := range streamsOf(resource, configured) {
		if err := c.addStream(added); err != nil {
			return err
		}
	}
	return nil
}

// addWildcard adds the streams of what is not configured by its own name.
func (c *cluster) addWildcard(found []change.Resource, configured *config.Resource) error {
	if len(configured.Namespaces) > 0 {
		found = slices.DeleteFunc(found, func(r change.Resource) bool { return r.ClusterScoped })
	}
	if len(found) == 0 {
		return usageError{fmt.Errorf("resource %q: all that it stands for is cluster-scoped and has no namespaces: leave out namespaces %s",
			configured.Name, strings.Join(configured.Namespaces, ", "))}
	}
	for _, resource := range found {
		if c.joinNamed(resource, configured.Name) {
			continue
		}
		if err := c.add(resource, configured); err != nil {
			return err
		}
	}
	return nil
}

// joinNamed makes the streams that are configured by the resource's own name stand for the wildcard, too, and says
// whether there are any.
func (c *cluster) joinNamed(resource change.Resource, wildcard string) bool {
	found := false
	for i := range c.streams {
		there := &c.streams[i]
		if sameResource(there.stream.Resource, resource) && !isWildcard(there.names[0]) {
			there.names = append(there.names, wildcard)
			found = true
		}
	}
	return found
}

// sameResource leaves the version out: two versions are two forms of the same objects.
func sameResource(a, b change.Resource) bool { return a.Group == b.Group && a.Name == b.Name }

func streamsOf(resource change.Resource, configured *config.Resource) []selected {
	namespaces := configured.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	var streams []selected
	for _, namespace := range namespaces {
		streams = append(streams, selected{
			stream:    change.Stream{Resource: resource, Namespace: namespace},
			selection: source.Selection{LabelSelector: configured.LabelSelector, FieldSelector: configured.FieldSelector},
			names:     []string{configured.Name}, configured: configured,
		})
	}
	return streams
}

// addStream adds a stream, or its name to the same one. One object in two streams would be delivered twice.
func (c *cluster) addStream(added selected) error {
	for i := range c.streams {
		there := &c.streams[i]
		if !sameResource(there.stream.Resource, added.stream.Resource) || !overlap(there.stream.Namespace, added.stream.Namespace) {
			continue
		}
		if there.stream != added.stream || there.selection != added.selection || !sameShape(there.configured, added.configured) {
			return usageError{fmt.Errorf("resource %q: %s is configured already as %q, with other selectors, namespaces, rules or version: configure it in one place",
				added.names[0], added.stream.Resource, there.names[0])}
		}
		if !slices.Contains(there.names, added.names[0]) {
			there.names = append(there.names, added.names[0])
		}
		return nil
	}
	c.streams = append(c.streams, added)
	return nil
}

func overlap(a, b string) bool { return a == b || a == "" || b == "" }
