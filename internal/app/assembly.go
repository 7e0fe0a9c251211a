package app

import (
	"io"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/app/actors"
	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/httpserver"
	"github.com/kubecdc/kubecdc/internal/app/task"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/console"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/source"
)

// RunOptions are what a run is to do, and how it and those who started it speak to each other.
type RunOptions struct {
	Access  cluster.Access
	Config  *config.Config
	Out     io.Writer        // records for standard output
	ErrOut  io.Writer        // log lines
	Hangups <-chan os.Signal // each asks for a full snapshot; nil is none
	// AcceptNewKeys ends the old keys of tables whose keys have changed since the last run.
	AcceptNewKeys bool
	StopTimeout   time.Duration // how long a stop may take to deliver what is queued
}

// draws says whether the progress has a terminal for itself.
func (o *RunOptions) draws() bool {
	toStdout := slices.ContainsFunc(o.Config.Sinks, func(s config.Sink) bool { return s.Kind() == config.KindStdout })
	return console.IsTerminal(o.ErrOut) && os.Getenv("TERM") != "dumb" && !toStdout
}

// process is what outlives the single runs of an exporter.
type process struct {
	cfg      *config.Config
	options  RunOptions
	logger   *slog.Logger
	progress *console.Progress
	token    control.Token // that an operator's questions have to show
	server   *httpserver.Server
	audit    *actors.Receiver // nil is none
	memory   *memory
}

// assembly is everything that a run is made of.
type assembly struct {
	*process
	cluster  *cluster.Cluster
	catalog  *source.Catalog // what the server served when it was asked last
	store    *checkpoint.Store
	stateLog *task.StateLog // nil is none
	term     *task.Term     // nil is an exporter alone
}
