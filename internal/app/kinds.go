package app

import (
	"time"

	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/delivery"
	"github.com/kubecdc/kubecdc/internal/encode"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/registry"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/usage"
)

// kinds are all kinds of sinks, by config.Sink.Kind: the only place that knows which there are.
func kinds() map[string]kind {
	return map[string]kind{
		config.KindKafka:  {kafkaDestination, streams},
		config.KindNATS:   {natsDestination, clusterName},
		config.KindFile:   {fileDestination, nothing},
		config.KindStdout: {stdoutDestination, nothing},
	}
}

// kindOf is the kind of a configured sink.
func (c *cluster) kindOf(s *config.Sink) (kind, error) {
	all := c.kinds
	if all == nil {
		all = kinds()
	}
	k, known := all[s.Kind()]
	if !known {
		return kind{}, usage.Errorf("sink %s: this build has no sink of kind %q", s.Name, s.Kind())
	}
	return k, nil
}

// destination is that of a configured sink.
func (c *cluster) destination(s *config.Sink) (*destination, error) {
	k, err := c.kindOf(s)
	if err != nil {
		return nil, err
	}
	d, err := k.destination(s, c)
	if err != nil {
		return nil, usage.Errorf("sink %s: %w", s.Name, err)
	}
	return d, nil
}

// buildSinks makes a sink of each configured one. Every one that is wrong is in the error.
func buildSinks(cfg *config.Config, c *cluster, to outlet) ([]delivery.Sink, error) {
	var sinks []delivery.Sink
	var errs []error
	for i := range cfg.Sinks {
		built, err := buildSink(&cfg.Sinks[i], c, to)
		sinks, errs = append(sinks, built), append(errs, err)
	}
	return sinks, usage.Several("sinks", errs...)
}

func buildSink(s *config.Sink, c *cluster, to outlet) (delivery.Sink, error) {
	d, err := c.destination(s)
	if err != nil {
		return delivery.Sink{}, err
	}
	target, err := d.build(to)
	if err != nil {
		return delivery.Sink{}, usage.Errorf("sink %s: %w", s.Name, err)
	}
	oversize, err := oversizeOf(s)
	if err != nil {
		return delivery.Sink{}, usage.Errorf("sink %s: %w", s.Name, err)
	}
	encoding := encode.Options{
		Cluster: c.name, ClusterUID: c.uid, Version: c.version, Format: s.Format, Transport: d.transport, Destination: d.routes,
		Tombstones: d.tombstones, Key: d.key, Headers: d.headers,
	}
	schemas, err := schemasOf(s, c, d, to.told)
	if err != nil {
		return delivery.Sink{}, usage.Errorf("sink %s: %w", s.Name, err)
	}
	var gate delivery.Gate
	if schemas != nil {
		encoding.Schemas, gate = schemas, schemas
	}
	return delivery.Sink{
		Name:     s.Name,
		Target:   target,
		Encoder:  encode.NewEncoder(encoding),
		Gate:     gate,
		Wants:    c.wantedBy(s),
		Queue:    fifo.Limit{Bytes: int(s.Queue.Bytes), Records: s.Queue.Records},
		Patches:  s.Patched(),
		Coalesce: s.Queue.Full == config.FullCoalesce,
		Spool:    int64(s.Queue.Spool),
		Resync:   time.Duration(s.Resync),
		Oversize: oversize,
	}, nil
}

// newReader makes what reads a sink's log back.
func newReader(s *config.Sink, c *cluster, start sink.Start) (sink.Reader, error) {
	d, err := c.destination(s)
	if err != nil {
		return nil, err
	}
	reader, err := d.read(start)
	if err != nil {
		return nil, usage.Errorf("sink %s: %w", s.Name, err)
	}
	if d.registry == nil {
		return reader, nil
	}
	client, err := registryClient(d.registry, c.version)
	if err != nil {
		return nil, usage.Errorf("sink %s: %w", s.Name, err)
	}
	return registry.NewReader(reader, client), nil
}
