package destination

import (
	"time"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/encode"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/listener"
	"github.com/kubecdc/kubecdc/internal/registry"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/usage"
)

// registered are kinds of sinks, by config.Sink.Kind.
type registered map[string]kind

// kinds are all kinds of sinks: the place outside package config that knows which there are.
func kinds() registered {
	return registered{
		config.KindKafka:  {kafkaDestination, kafkaNeeds},
		config.KindNATS:   {natsDestination, always(clusterName)},
		config.KindFile:   {fileDestination, always(nothing)},
		config.KindStdout: {stdoutDestination, always(nothing)},
	}
}

// Of is the destination of a configured sink.
func Of(s *config.Sink, c *cluster.Cluster) (*Destination, error) { return kinds().of(s, c) }

// Build makes the configured sink.
func Build(s *config.Sink, c *cluster.Cluster, to Outlet) (listener.Sink, error) {
	return kinds().build(s, c, to)
}

// BuildAll makes a sink of each configured one. Every one that is wrong is in the error.
func BuildAll(cfg *config.Config, c *cluster.Cluster, to Outlet) ([]listener.Sink, error) {
	return kinds().buildAll(cfg, c, to)
}

// NewReader makes what reads a sink's log back.
func NewReader(s *config.Sink, c *cluster.Cluster, start sink.Start) (sink.Reader, error) {
	return kinds().reader(s, c, func(d *Destination) (sink.Reader, error) { return d.read(start) })
}

// kindOf is the kind of a configured sink.
func (r registered) kindOf(s *config.Sink) (kind, error) {
	k, known := r[s.Kind()]
	if !known {
		return kind{}, usage.Errorf("sink %s: this build has no sink of kind %q", s.Name, s.Kind())
	}
	return k, nil
}

// of is the destination of a configured sink.
func (r registered) of(s *config.Sink, c *cluster.Cluster) (*Destination, error) {
	k, err := r.kindOf(s)
	if err != nil {
		return nil, err
	}
	d, err := k.destination(s, c)
	if err != nil {
		return nil, usage.Errorf("sink %s: %w", s.Name, err)
	}
	return d, nil
}

// buildAll makes a sink of each configured one. Every one that is wrong is in the error.
func (r registered) buildAll(cfg *config.Config, c *cluster.Cluster, to Outlet) ([]listener.Sink, error) {
	var sinks []listener.Sink
	var errs []error
	for i := range cfg.Sinks {
		built, err := r.build(&cfg.Sinks[i], c, to)
		sinks, errs = append(sinks, built), append(errs, err)
	}
	return sinks, usage.Several("sinks", errs...)
}

func (r registered) build(s *config.Sink, c *cluster.Cluster, to Outlet) (listener.Sink, error) {
	d, err := r.of(s, c)
	if err != nil {
		return listener.Sink{}, err
	}
	target, err := d.build(to)
	if err != nil {
		return listener.Sink{}, usage.Errorf("sink %s: %w", s.Name, err)
	}
	oversize, err := oversizeOf(s)
	if err != nil {
		return listener.Sink{}, usage.Errorf("sink %s: %w", s.Name, err)
	}
	encoding := encode.Options{
		Cluster: c.Name, ClusterUID: c.UID, Version: c.Version, Format: s.Format, Transport: d.transport, Destination: d.routes,
		Tombstones: d.tombstones, Key: d.key, Headers: d.headers,
	}
	schemas, err := schemasOf(s, c, d, to.Told)
	if err != nil {
		return listener.Sink{}, usage.Errorf("sink %s: %w", s.Name, err)
	}
	var gate listener.Gate
	if schemas != nil {
		encoding.Schemas, gate = schemas, schemas
	}
	return listener.Sink{
		Name:     s.Name,
		Target:   target,
		Encoder:  encode.NewEncoder(encoding),
		Gate:     gate,
		Wants:    c.WantedBy(s),
		Actors:   s.Actors,
		Queue:    fifo.Limit{Bytes: int(s.Queue.Bytes), Records: s.Queue.Records},
		Patches:  s.Patched(),
		Coalesce: s.Queue.Coalesces(),
		Spool:    int64(s.Queue.Spool),
		Resync:   time.Duration(s.Resync),
		Oversize: oversize,
	}, nil
}

// reader makes what reads a sink's log back.
func (r registered) reader(s *config.Sink, c *cluster.Cluster, read func(*Destination) (sink.Reader, error)) (sink.Reader, error) {
	d, err := r.of(s, c)
	if err != nil {
		return nil, err
	}
	reader, err := read(d)
	if err != nil {
		return nil, usage.Errorf("sink %s: %w", s.Name, err)
	}
	if d.Registry == nil {
		return reader, nil
	}
	client, err := registryClient(d.Registry, c.Version)
	if err != nil {
		return nil, usage.Errorf("sink %s: %w", s.Name, err)
	}
	return registry.NewReader(reader, client), nil
}
