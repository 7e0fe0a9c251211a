package selection

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/source"
	"github.com/kubecdc/kubecdc/internal/usage"
)

// WasServed says whether nothing is wrong but names that the state knows as those of streams: their resources vanished
// while nobody looked, or will be back.
func WasServed(ctx context.Context, cfg *config.Config, err error) bool {
	var all []error
	for _, one := range usage.Each(err) {
		var unknown *source.UnknownResourceError
		if !errors.As(one, &unknown) {
			return false
		}
		all = append(all, unknown)
	}
	store, openErr := checkpoint.Open(ctx, cfg.State.Dir, checkpoint.Options{ReadOnly: true})
	if openErr != nil {
		return false // who opens it next will say why
	}
	known := true
	for _, one := range all {
		known = known && knows(store, one.(*source.UnknownResourceError).Name, cfg)
	}
	return store.Close() == nil && known
}

// knows says whether the state has a stream of the configured resource.
func knows(store *checkpoint.Store, name string, cfg *config.Config) bool {
	for i := range cfg.Resources {
		if cfg.Resources[i].Name != name {
			continue
		}
		for _, namespace := range append(slices.Clone(cfg.Resources[i].Namespaces), "") {
			stream := strings.TrimPrefix(namespace+"/"+name, "/")
			if _, found, err := store.Resource(stream); err == nil && found {
				return true
			}
		}
	}
	return false
}
