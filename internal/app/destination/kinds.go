package destination

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/internal/app/background"
	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/format/encode"
	"github.com/kubecdc/kubecdc/internal/format/registry"
	"github.com/kubecdc/kubecdc/internal/listener"
	"github.com/kubecdc/kubecdc/internal/shape/transform"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// NewPlan says what a run would do about the schemas of a stream's records, and changes nothing. There may be a plan
// beside an error: of a version that the registry would refuse, or of keys that do not go on with those that the sink
// has at the mark. It is nil where the sink has no registry.
func NewPlan(
	s *config.Sink, c *cluster.Cluster,
) (func(context.Context, *change.Stream, sink.Mark) (*registry.Plan, error), error) {
	d, err := Of(s, c)
	if err != nil || d.Registry == nil {
		return nil, err
	}
	schemas, err := schemasOf(s, c, d, Nop{})
	return func(ctx context.Context, stream *change.Stream, at sink.Mark) (*registry.Plan, error) {
		plan, err := schemas.Plan(ctx, &stream.Resource)
		if err == nil {
			err = d.goesOn(at, stream, plan.Key.ID)
		}
		return plan, err
	}, err
}

// Open makes what reads the log of one of the configuration's sinks, as it comes. The API server is asked only for what
// the sink needs of it.
func Open(ctx context.Context, to cluster.Access, cfg *config.Config, s *config.Sink, start sink.Start) (sink.Reader, error) {
	cluster.NewLogger(io.Discard, cfg.Log)
	c := &cluster.Cluster{Name: cfg.Cluster}
	needsName, needsStreams := needs(s)
	if needsStreams || needsName && c.Name == "" {
		var err error
		if c, err = cluster.Find(ctx, to, cfg); err != nil {
			return nil, err
		}
	}
	if needsStreams {
		if _, err := c.Resolve(ctx, c.Rest, cfg.Resources); err != nil {
			return nil, err
		}
	}
	return readerOf(s, c, func(d *Destination) (sink.Reader, error) {
		if d.tail == nil || needsStreams {
			return d.read(start)
		}
		return d.tail(start)
	})
}

// NeedsStreams says whether only the streams tell which places the sink writes to.
func NeedsStreams(s *config.Sink) bool {
	_, streams := needs(s)
	return streams
}

// needs says what of the cluster has to be known, before a log can be read: its name, where that is in the places that
// the sink writes to, and its streams, where only they tell these from what others write to.
func needs(s *config.Sink) (name, streams bool) {
	if s.Kind() == config.KindKafka {
		return kafkaNeeds(s)
	}
	return s.Kind() == config.KindNATS, false
}

// Of is the destination of a configured sink, by its kind: the place outside package config that knows which there are.
func Of(s *config.Sink, c *cluster.Cluster) (d *Destination, err error) {
	switch s.Kind() {
	case config.KindKafka:
		d, err = kafkaDestination(s, c)
	case config.KindNATS:
		d, err = natsDestination(s, c)
	default:
		d = fileDestination(s)
	}
	if err != nil {
		return nil, usage.Errorf("sink %s: %w", s.Name, err)
	}
	return d, nil
}

// BuildAll makes a sink of each configured one. Every one that is wrong is in the error.
func BuildAll(cfg *config.Config, c *cluster.Cluster, to Outlet) ([]listener.Sink, error) {
	var sinks []listener.Sink
	var errs []error
	for i := range cfg.Sinks {
		built, err := Build(&cfg.Sinks[i], c, to)
		sinks, errs = append(sinks, built), append(errs, err)
	}
	return sinks, usage.Several("sinks", errs...)
}

// Build makes the configured sink.
func Build(s *config.Sink, c *cluster.Cluster, to Outlet) (listener.Sink, error) {
	d, err := Of(s, c)
	if err != nil {
		return listener.Sink{}, err
	}
	target, err := d.build(to)
	var oversize listener.Oversize
	if err == nil {
		oversize, err = oversizeOf(s)
	}
	var schemas *registry.Schemas
	if err == nil {
		schemas, err = schemasOf(s, c, d, to.Told)
	}
	if err != nil {
		return listener.Sink{}, usage.Errorf("sink %s: %w", s.Name, err)
	}
	encoding := d.encoding
	encoding.Cluster, encoding.ClusterUID, encoding.Version = c.Name, c.UID, c.Version
	encoding.Format, encoding.FramesAside = s.Format, s.FramesAside()
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
		Owner:    c.Owner,
		Actors:   s.Actors,
		Queue:    fifo.Limit{Bytes: int(s.Queue.Bytes), Records: s.Queue.Records},
		Patches:  s.Patched(),
		Coalesce: s.Queue.Coalesces(),
		Spool:    int64(s.Queue.Spool),
		Resync:   time.Duration(s.Resync),
		Resolved: time.Duration(s.Resolved.Every),
		Digest:   s.Resolved.Digest,
		Oversize: oversize,

		DeletesLeft: s.OnLeave == "delete",
	}, nil
}

// NewReader makes what reads a sink's log back.
func NewReader(s *config.Sink, c *cluster.Cluster, start sink.Start) (sink.Reader, error) {
	return readerOf(s, c, func(d *Destination) (sink.Reader, error) { return d.read(start) })
}

func readerOf(s *config.Sink, c *cluster.Cluster, read func(*Destination) (sink.Reader, error)) (sink.Reader, error) {
	d, err := Of(s, c)
	if err != nil {
		return nil, err
	}
	reader, err := read(d)
	if err == nil && d.Registry != nil {
		client, failed := registryClient(d.Registry, c.Version)
		reader, err = registry.NewReader(reader, client), failed
	}
	if err != nil {
		return nil, usage.Errorf("sink %s: %w", s.Name, err)
	}
	return reader, nil
}

// oversizeOf is what becomes of a record that is too large for the sink.
func oversizeOf(s *config.Sink) (listener.Oversize, error) {
	o := listener.Oversize{Reject: s.Oversize == "reject"}
	if !s.Trims() {
		return o, nil
	}
	paths := append([]string{".metadata.managedFields", transform.LastApplied}, s.Trim...)
	for _, path := range paths {
		cut, err := transform.New(transform.Rules{Drop: []string{path}}, transform.Key{Secret: []byte("no hash is made")})
		if err != nil {
			return o, fmt.Errorf("trim %s", strings.TrimPrefix(err.Error(), "drop "))
		}
		o.Trims = append(o.Trims, listener.Trim{Path: path, Cut: func(object []byte) ([]byte, error) { return cut.Apply(nil, object, transform.Owner{}) }})
	}
	return o, nil
}

// RunGates runs the sinks' gates that have something to do until the returned stop, which waits.
func RunGates(ctx context.Context, sinks []listener.Sink) (stop func()) {
	var all []func(context.Context)
	for i := range sinks {
		if gate, runs := sinks[i].Gate.(interface{ Run(ctx context.Context) }); runs {
			all = append(all, gate.Run)
		}
	}
	return background.Run(context.WithoutCancel(ctx), all...) // what is queued at the end is delivered, too
}
