package selection

import (
	"reflect"
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/listener"
	"github.com/kubecdc/kubecdc/internal/shape"
	"github.com/kubecdc/kubecdc/internal/source"
	"github.com/kubecdc/kubecdc/internal/transform"
	"github.com/kubecdc/kubecdc/internal/usage"
)

// checkShape finds an expression, a path or a pattern that cannot be parsed.
func checkShape(configured *config.Resource) error {
	options := shape.Options{Filter: configured.Filter, Before: configured.Before, Rules: rules(configured), Key: transform.Key{Secret: []byte("any")}}
	if _, err := shape.New(options); err != nil {
		return usage.Errorf("resource %q: %w", configured.Name, err)
	}
	if _, err := shape.NewIgnored(ignored(change.Resource{}, configured)); err != nil {
		return usage.Errorf("resource %q: ignore %w", configured.Name, err)
	}
	return nil
}

// rules are the cuts and hashes that are configured for a resource.
func rules(configured *config.Resource) transform.Rules {
	own := transform.Rules{Drop: configured.Drop, Keep: configured.Only, Redact: configured.Redact.Paths, Env: configured.RedactEnv}
	return withKept(own, *configured)
}

// withKept are the rules with what the resources keep, which repeats the object. The rules are for that, too.
func withKept(own transform.Rules, resources ...config.Resource) transform.Rules {
	own.Applied = !own.Empty() && slices.ContainsFunc(resources, func(r config.Resource) bool { return KeepOf(&r).LastApplied })
	own.Managed = !own.Empty() && slices.ContainsFunc(resources, func(r config.Resource) bool { return KeepOf(&r).ManagedFields })
	return own
}

// isSecrets says whether the objects are those whose values stay unless somebody asks for them by name (I9).
func isSecrets(r change.Resource) bool { return r.Group == "" && r.Name == "secrets" }

// rulesOf are those of the entry for objects of the resource.
func rulesOf(resource change.Resource, configured *config.Resource) transform.Rules {
	if isSecrets(resource) && !configured.Redact.None {
		return transform.Secrets().Join(rules(configured))
	}
	return rules(configured)
}

// KeptOf are what is kept of the stream's objects; nil is nothing.
func KeptOf(s *Selected, images *listener.Images) source.Kept {
	if !s.keeps() {
		return nil
	}
	return images
}

// keeps says whether the stream's objects are kept.
func (s *Selected) keeps() bool { return s.Configured.IsKept() }

// KeepOf is what is kept of what is cut otherwise while objects are read.
func KeepOf(configured *config.Resource) source.Keep {
	return source.Keep{
		ManagedFields: slices.Contains(configured.Keep, config.KeepManagedFields),
		LastApplied:   slices.Contains(configured.Keep, config.KeepLastApplied),
		Actor:         configured.Actor,
	}
}

// sameShape says whether two entries of the configuration do the same with an object.
func sameShape(a, b *config.Resource) bool {
	x, y := *a, *b
	for _, r := range []*config.Resource{&x, &y} {
		// of the selection, which is compared, too
		r.Name, r.Namespaces, r.Exclude, r.ExcludeNamespaces, r.Required = "", nil, nil, nil, false
	}
	return reflect.DeepEqual(x, y)
}
