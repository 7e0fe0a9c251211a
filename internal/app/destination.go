package app

import (
	"io"
	"time"

	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/encode"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/statelog"
)

// destination is one configured sink as its kind understands it: all that the rest of the exporter asks of a kind.
type destination struct {
	transport  encode.Transport   // how what is beside a value is carried
	routes     encode.Destination // of its records; nil where there is one place only
	key        *encode.Text       // of an object's messages; nil is the format's
	headers    []encode.Header    // of all messages
	tombstones bool               // a delete is followed by a message without a value
	shared     bool               // other clusters may write there, so only the records of this one count
	places     []place            // what it alone writes to
	registry   *config.Registry   // of its values' schemas; nil is none
	address    string             // for people, without a login
	what       string             // the same, wherever its servers are
	inUse      func(error) bool   // says whether an error is that another process has it open; nil is never
	build      func(outlet) (sink.Sink, error)
	read       func(sink.Start) (sink.Reader, error) // its log
	// hearer hears what others ask through the sink's broker, for the desk; nil is that nobody can
	hearer func(*desk) hearer
	// stateLog is the log of the state of the name at its broker; nil is that it cannot have one
	stateLog func(name string, retry sink.RetryFunc) (statelog.Place, error)
}

// outlet is what sinks have of the process.
type outlet struct {
	stdout io.Writer
	told   sinkObserver
}

// sinkObserver is told what sinks do, each under its name.
type sinkObserver interface {
	Retried(name, reason string, err error)
	Noticed(name, text string)
	LabelTopics(name string, topics int)
	schemasObserver
}

// schemasObserver is told of the schemas of sinks with a registry, each under the sink's name.
type schemasObserver interface {
	SchemaKnown(name, resource string, schema sink.Schema, behind error)
	SchemaWaits(name, resource string, why error, forGood bool)
	SchemaForgotten(name, resource string)
	SchemaReplaced(name, resource string, schema sink.Schema, confirmed time.Time)
}

// nopObserver hears nothing.
type nopObserver struct{}

func (nopObserver) Retried(string, string, error) {}
func (nopObserver) Noticed(string, string)        {}
func (nopObserver) LabelTopics(string, int)       {}

func (nopObserver) SchemaKnown(string, string, sink.Schema, error)        {}
func (nopObserver) SchemaWaits(string, string, error, bool)               {}
func (nopObserver) SchemaForgotten(string, string)                        {}
func (nopObserver) SchemaReplaced(string, string, sink.Schema, time.Time) {}

func retried(told sinkObserver, name string) sink.RetryFunc {
	return func(reason string, err error) { told.Retried(name, reason, err) }
}

// kind is one kind of sinks.
type kind struct {
	destination func(*config.Sink, *cluster) (*destination, error)
	needs       need // of the cluster, before a log can be read
}

// need is how much of the cluster a kind has to know.
type need uint8

const (
	nothing     need = iota
	clusterName      // where it writes is named after the cluster
	streams          // and after the streams
)
