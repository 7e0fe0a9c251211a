package main

import (
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/config"
)

// stopTimeout is how long a stop may take to deliver what is queued. Kubernetes kills a pod after 30 s.
const stopTimeout = 20 * time.Second

// flags are what run, dev and check have in common.
type flags struct {
	file   string
	access cluster.Access
	config config.Flags
}

func (f *flags) register(cmd *cobra.Command) {
	set := cmd.Flags()
	set.StringVarP(&f.file, "config", "f", "", "configuration file (YAML)")
	f.registerAccess(set, "kubeconfig file")
	set.StringSliceVar(&f.config.Resources, "resources", nil, `resources as kubectl names them: pods,deployments.apps,"*.cert-manager.io"`)
	set.StringArrayVar(&f.config.Sinks, "sink", nil, "destination, can be repeated: file:///path/out.ndjson, - (stdout), kafka://host:9092[,host:9092][?topic=NAME], nats://host:4222[?stream=NAME]; ?name=NAME after each names it")
	set.StringVar(&f.config.Format, "format", "", "message format: "+strings.Join(config.Formats(), ", "))
	set.StringVar(&f.config.StateDir, "state-dir", "", "directory of the saved state")
	set.StringVar(&f.config.Listen, "listen", "", "address of /metrics, /healthz, /readyz and /statusz and, on this host only, of exporter snapshot and inventory")
	set.StringVar(&f.config.LogLevel, "log-level", "", strings.Join(config.LogLevels(), ", "))
	set.StringVar(&f.config.LogFormat, "log-format", "", strings.Join(config.LogFormats(), ", "))
}

// registerAccess adds what says which API server is meant.
func (f *flags) registerAccess(set *pflag.FlagSet, kubeconfig string) {
	f.access.Version = version
	set.StringVar(&f.access.Kubeconfig, "kubeconfig", "", kubeconfig+" (default: KUBECONFIG, ~/.kube/config, or the pod's service account)")
	set.StringVar(&f.access.Context, "context", "", "kubeconfig context (default: the current one)")
	set.StringVar(&f.config.Cluster, "cluster", "", "name of the cluster in events (default: the context's name)")
}

// load reads the file, puts the flags over it, and checks the result.
func (f *flags) load(adjust func(*config.Config)) (*config.Config, error) {
	cfg := new(config.Config)
	if f.file != "" {
		var err error
		if cfg, err = config.Load(f.file, os.LookupEnv); err != nil {
			return nil, err
		}
	}
	if err := config.Overlay(cfg, f.config); err != nil {
		return nil, err
	}
	adjust(cfg)
	return cfg, cfg.Validate()
}
