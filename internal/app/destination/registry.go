package destination

import (
	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/objecttype"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/format/encode"
	"github.com/kubecdc/kubecdc/internal/format/registry"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/source"
)

func registryClient(r *config.Registry, version string) (*registry.Client, error) {
	return registry.NewClient(registry.Login{
		URLs: r.URLs(), User: r.User, Password: r.Password.Reveal(), Token: r.Token.Reveal(), Agent: "kubecdc-exporter/" + version,
		TLS: sink.TLS{CAFile: r.TLS.CA, CertFile: r.TLS.Cert, KeyFile: r.TLS.Key, ServerName: r.TLS.ServerName},
	})
}

// schemasOf are the schemas of the sink's records, nil where it has no registry.
func schemasOf(s *config.Sink, c *cluster.Cluster, d *Destination, told Observer) (*registry.Schemas, error) {
	r := d.Registry
	if r == nil {
		return nil, nil
	}
	client, err := registryClient(r, c.Version)
	if err != nil {
		return nil, err
	}
	access, err := source.NewAccess(c.Rest)
	if err != nil {
		return nil, err
	}
	// Which topic an object has the resource alone decides, where that counts.
	subjects := func(resource *change.Resource) (key, value string) {
		topic := string(d.routes.Append(nil, &change.Record{Stream: &change.Stream{Resource: *resource}}))
		return encode.Subjects(r.Subject, s.Format, topic, resource)
	}
	return registry.NewSchemas(registry.Options{
		Client: client, Types: objecttype.NewTypes(c, s, access, func(text string) { told.Noticed(s.Name, text) }), Format: s.Format, Subjects: subjects,
		Columns: s.HasColumns(), Register: *r.Register, Compatibility: r.Compatibility, Interval: c.Look, Observer: told, Sink: s.Name,
	}), nil
}
