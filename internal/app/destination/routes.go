package destination

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/encode"
	"github.com/kubecdc/kubecdc/internal/selection"
)

// routesOf gives the streams of the resources that have templates of their own what parse makes of them, and leaves the
// others to the common one. Of several names of a stream the first counts that has a template: its own comes before a
// wildcard.
func routesOf(c *cluster.Cluster, others encode.Destination, templates map[string]string, parse func(string) (encode.Destination, error)) (encode.Routes, error) {
	made := map[string]encode.Destination{}
	for _, name := range slices.Sorted(maps.Keys(templates)) {
		own, err := parse(templates[name])
		if err != nil {
			return encode.Routes{}, fmt.Errorf("resource %q: %w", name, err)
		}
		made[name] = own
	}
	routed := selection.Following(&c.Current, func(s *selection.Selected) encode.Destination {
		for _, name := range s.Names {
			if own, found := made[name]; found {
				return own
			}
		}
		return nil
	})
	return encode.Routes{Others: others, Own: routed}, nil
}

// headersOf are the configured headers, by name.
func headersOf(templates map[string]string, cluster string) (headers []encode.Header, err error) {
	for _, name := range slices.Sorted(maps.Keys(templates)) {
		text, err := encode.NewText(templates[name], cluster)
		if err != nil {
			return nil, fmt.Errorf("header %s: %w", name, err)
		}
		headers = append(headers, encode.Header{Name: name, Text: text})
	}
	return headers, nil
}
