package destination

import (
	"context"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/format/encode"
	"github.com/kubecdc/kubecdc/internal/format/registry"
	"github.com/kubecdc/kubecdc/internal/ha/statelog"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/source"
)

// Destination is one configured sink as its kind understands it: all that the rest of the exporter asks of a kind.
type Destination struct {
	Registry *config.Registry // of its values' schemas; nil is none
	Shared   bool             // other clusters may write there, so only the records of this one count
	Places   []Place          // what it alone writes to
	Address  string           // for people, without a login
	What     string           // the same, wherever its servers are
	InUse    func(error) bool // says whether an error is that another process has it open; nil is never
	// Hearer hears what others ask through the sink's broker, for a handler; nil is that nobody can
	Hearer func(*RequestHandler) (Hearer, error)
	// StateLog is the log of the state of the name at its broker; nil is that it cannot have one
	StateLog func(name string, retry sink.RetryFunc) (statelog.Place, error)

	encoding encode.Options // what of its messages is the kind's
	build    func(Outlet) (sink.Sink, error)
	read     func(sink.Start) (sink.Reader, error) // its log
	// goesOn refuses keys of another schema, with a registry
	goesOn func(at sink.Mark, stream *change.Stream, keys uint32) error
	// tail is the same of whatever streams; nil is as read
	tail func(sink.Start) (sink.Reader, error)
}

// RequestHandler answers those who ask through a sink's broker, by questions or by signals.
type RequestHandler struct {
	Questions map[string]func(ctx context.Context, text []byte) ([]byte, error) // by their names
	// Signals is who follows signals, from the place on. tells says whether somebody is told what becomes of them.
	Signals func(tells bool) (follower SignalHandler, place string)
	Hears   func(error)                        // is told why nobody is heard, and with nil that all are
	Refused func(question string, cause error) // is told what is refused unread
}

// Hearer hears what others ask through a broker.
type Hearer interface {
	// Run answers until ctx ends.
	Run(ctx context.Context)
	// Check says what keeps it from hearing, and changes nothing.
	Check(ctx context.Context) error
}

// Outlet is what sinks have of the process.
type Outlet struct {
	Stdout io.Writer
	Told   Observer
	// AcceptNewKeys ends the old keys of tables whose keys have changed; otherwise their sinks stop
	AcceptNewKeys bool
}

// Observer is told what sinks do, each under its name.
type Observer interface {
	Retried(name, reason string, err error)
	LabelTopics(name string, topics int)
	Noticed(name, text string) // what a person may want to know
	Warned(name, text string)  // what may be meant otherwise
	registry.Observer
}

// Nop hears nothing.
type Nop struct{}

func (Nop) Retried(string, string, error) {}
func (Nop) Noticed(string, string)        {}
func (Nop) Warned(string, string)         {}
func (Nop) LabelTopics(string, int)       {}

func (Nop) SchemaKnown(string, string, sink.Schema, error)        {}
func (Nop) SchemaWaits(string, string, error, bool)               {}
func (Nop) SchemaForgotten(string, string)                        {}
func (Nop) SchemaReplaced(string, string, sink.Schema, time.Time) {}

func retried(told Observer, name string) sink.RetryFunc {
	return func(reason string, err error) { told.Retried(name, reason, err) }
}

// Place is what one sink alone writes to, at one of some servers.
type Place struct {
	servers []string // host:port of some; none is this host
	What    string   // "stream K8S"
	Key     string   // of the sink's configuration, which tells the places apart
}

// Meets says whether both are the same: a place whose servers are named otherwise is not known to be.
func (p *Place) Meets(other *Place) bool {
	if p.What != other.What {
		return false
	}
	theirs := machines(other.servers)
	isTheirs := func(server string) bool { return slices.Contains(theirs, server) }
	return len(p.servers) == 0 || slices.ContainsFunc(machines(p.servers), isTheirs)
}

// machines are the servers, of which this host has one name.
func machines(servers []string) (all []string) {
	for _, server := range servers {
		host, port, err := net.SplitHostPort(server)
		if address := net.ParseIP(host); err == nil && (host == "localhost" || address != nil && address.IsLoopback()) {
			server = net.JoinHostPort("localhost", port)
		}
		all = append(all, server)
	}
	return all
}

// withPort is the address as host:port.
func withPort(address, port string) string {
	if _, _, err := net.SplitHostPort(address); err == nil {
		return address
	}
	return net.JoinHostPort(strings.Trim(address, "[]"), port)
}

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
	server, err := source.NewClient(c.Rest, 0)
	if err != nil {
		return nil, err
	}
	// Which topic an object has the resource alone decides, where that counts.
	subjects := func(resource *change.Resource) (key, value string) {
		topic := string(d.encoding.Destination.Append(nil, &change.Record{Stream: &change.Stream{Resource: *resource}}))
		return encode.Subjects(r.Subject, s.Format, topic, resource)
	}
	return registry.NewSchemas(registry.Options{
		Client: client, Types: &types{cluster: c, sink: s, client: server, notice: func(text string) { told.Noticed(s.Name, text) }}, Format: s.Format, Subjects: subjects,
		Columns: s.HasColumns(), Register: *r.Register, Compatibility: r.Compatibility, Interval: c.Look, Observer: told, Sink: s.Name,
	}), nil
}
