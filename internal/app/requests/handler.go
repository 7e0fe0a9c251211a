package requests

import (
	"log/slog"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/pipeline"
)

// Handler does what is asked of one run, whoever asks. All fields are needed.
type Handler struct {
	Config   *config.Config
	Cluster  *cluster.Cluster
	Store    *checkpoint.Store
	Logger   *slog.Logger
	Requests chan pipeline.Request // which the pipeline takes
	Owing    *Snapshots
	Status   func() any // the status document
	Told     Observer
}

// Observer is told what is asked through the brokers of sinks.
type Observer interface {
	Hears(sinkName string, err error)
	Asked(sinkName, what string, err error)
	Noticed(sinkName, text string)
}
