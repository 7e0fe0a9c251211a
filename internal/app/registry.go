package app

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/delivery"
	"github.com/kubecdc/kubecdc/internal/encode"
	"github.com/kubecdc/kubecdc/internal/openapi"
	"github.com/kubecdc/kubecdc/internal/registry"
	"github.com/kubecdc/kubecdc/internal/selection"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/source"
	"github.com/kubecdc/kubecdc/internal/transform"
	"github.com/kubecdc/kubecdc/internal/typed"
)

func registryClient(r *config.Registry, version string) (*registry.Client, error) {
	return registry.NewClient(registry.Login{
		URLs: r.URLs(), User: r.User, Password: r.Password.Reveal(), Token: r.Token.Reveal(), Agent: "kubecdc-exporter/" + version,
		TLS: registry.TLS{CA: r.TLS.CA, Cert: r.TLS.Cert, Key: r.TLS.Key, ServerName: r.TLS.ServerName},
	})
}

// subjects are those of a resource's schemas. Which topic an object has the resource alone decides, where that counts.
func subjects(s *config.Sink, d *destination) func(*change.Resource) (key, value string) {
	return func(resource *change.Resource) (key, value string) {
		topic := string(d.routes.Append(nil, &change.Record{Stream: &change.Stream{Resource: *resource}}))
		return encode.Subjects(d.registry.Subject, s.Format, topic, resource)
	}
}

// schemasOf are the schemas of the sink's records, nil where it has no registry.
func schemasOf(s *config.Sink, c *cluster, d *destination, told sinkObserver) (*registry.Schemas, error) {
	r := d.registry
	if r == nil {
		return nil, nil
	}
	client, err := registryClient(r, c.version)
	if err != nil {
		return nil, err
	}
	access, err := source.NewAccess(c.rest)
	if err != nil {
		return nil, err
	}
	return registry.NewSchemas(registry.Options{
		Client: client, Types: &types{c, s, &documents{access: access, age: c.look / 2}}, Format: s.Format, Subjects: subjects(s, d),
		Register: *r.Register, Compatibility: r.Compatibility, Interval: c.look, Observer: schemaObserver{s.Name, told},
	}), nil
}

// behindRules is the type of the objects of the streams, which are of one resource, behind the rules, also of the sink;
// nil is none. The type is nil where the server does not describe the kind.
func behindRules(document *openapi.Document, resource change.Resource, streams []selection.Selected, s *config.Sink) (*typed.Type, error) {
	rules, managedFields := selection.CommonRules(streams)
	of := document.Type(resource.Group, resource.Version, resource.Kind, openapi.Options{ManagedFields: managedFields})
	if of == nil {
		return nil, nil
	}
	all := []transform.Rules{rules}
	if s != nil {
		all = append(all, selection.SinkRules(s))
	}
	for _, one := range all {
		var err error
		if of, err = of.Narrow(one); err != nil {
			return nil, fmt.Errorf("the rules of %s: %w", resource.String(), err)
		}
	}
	return of, nil
}

// schemaObserver tells of the schemas of a sink under its name.
type schemaObserver struct {
	sink string
	told sinkObserver
}

func (o schemaObserver) SchemaKnown(resource, subject string, id uint32, behind error) {
	o.told.SchemaKnown(o.sink, resource, sink.Schema{Subject: subject, ID: id}, behind)
}

func (o schemaObserver) SchemaWaits(resource string, why error, forGood bool) {
	o.told.SchemaWaits(o.sink, resource, why, forGood)
}

func (o schemaObserver) SchemaReplaced(resource, subject string, id uint32, confirmed time.Time) {
	o.told.SchemaReplaced(o.sink, resource, sink.Schema{Subject: subject, ID: id}, confirmed)
}

func (o schemaObserver) SchemaForgotten(resource string) { o.told.SchemaForgotten(o.sink, resource) }

// runSchemas sees to the sinks' schemas until the returned stop, which waits.
func runSchemas(ctx context.Context, sinks []delivery.Sink) (stop func()) {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx)) // what is queued at the end is delivered, too
	var all sync.WaitGroup
	for i := range sinks {
		if schemas, some := sinks[i].Gate.(*registry.Schemas); some {
			all.Go(func() { schemas.Run(running) })
		}
	}
	return func() {
		cancel()
		all.Wait()
	}
}
