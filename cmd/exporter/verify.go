package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubecdc/kubecdc/internal/app/verification"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/observe/console"
)

// verifier is what the flags of exporter verify say.
type verifier struct {
	flags
	target
	resources []string
	sinks     []string
	output    string
	timeout   time.Duration
	offline   bool
}

func newVerifyCommand() *cobra.Command {
	v := new(verifier)
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Compare the cluster with the sinks",
		Long: `verify lists the configured resources, reads each sink's log from its beginning to its end as a consumer would, and
reports every object that is missing in the sink, stale (there in another version) or extra (there, but not in the
cluster). It writes nothing anywhere.

The cluster goes on changing meanwhile. What the sink has that is newer than the list is no difference, and where there
are differences, verify waits until the exporter's saved position proves that they are none that are still on their way:
it asks the exporter that owns the state directory, or the one at --server. Filters, ops, selectors and namespaces of the
configuration count; what of an object is cut or hashed does not matter, since uids and versions are compared.

With --offline it asks no cluster: it compares each log with the digests in it (resolved.digest of the sink), and says
after which time a record is missing or wrong.

The exit code is 0 where all is equal, 1 where something differs, and 2 where that could not be found out.`,
		Example: `  exporter verify -f config.yaml
  exporter verify -f config.yaml --sink lake --resources pods -o json
  exporter verify -f config.yaml --sink lake --offline
  exporter verify --resources configmaps --sink nats://localhost:4222 --state-dir ./state
  exporter verify --resources pods --sink kafka://localhost:9092 --state-dir ./state`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := v.run(cmd.Context(), cmd)
			if err == nil || errors.As(err, new(*verification.DiffersError)) {
				return err
			}
			return usage.Wrap(err) // exit code 2: nothing was found out
		},
	}
	v.register(cmd)
	return cmd
}

func (v *verifier) register(cmd *cobra.Command) {
	v.target.register(cmd)
	set := cmd.Flags()
	set.StringVarP(&v.file, "config", "f", "", "configuration file (YAML) of the exporter")
	v.registerAccess(set, "kubeconfig file")
	set.StringVar(&v.config.Format, "format", "", "message format of sinks that are given as URLs: "+strings.Join(config.Formats(), ", "))
	set.StringSliceVar(&v.resources, "resources", nil, "resources to compare, as they are configured (default: all); without --config, those that the exporter streams")
	set.StringArrayVar(&v.sinks, "sink", nil, "name of a configured sink, can be repeated (default: all); without --config, its URL: file://, kafka:// or nats://, as for exporter run")
	set.StringVarP(&v.output, "output", "o", "text", "text, or json: one document per sink, each on one line")
	set.BoolVar(&v.offline, "offline", false, "compare each log with the digests in it, and not with the cluster")
	set.DurationVar(&v.timeout, "timeout", 30*time.Second, "how long to wait until differences are proven")
}

func (v *verifier) run(ctx context.Context, cmd *cobra.Command) error {
	cfg, err := v.configuration(cmd)
	if err != nil {
		return err
	}
	run := verification.Run
	if v.offline {
		run = verification.Offline
	}
	return run(ctx, verification.Options{
		Access: v.access, Config: cfg, Resources: v.resources, AllSinks: len(v.sinks) == 0,
		Client: v.client, StateDir: v.stateDir, Timeout: v.timeout,
	}, &console.Reports{Out: stdout(cmd), JSON: v.output == "json"})
}

// configuration is the file's, with the sinks that are asked for.
func (v *verifier) configuration(cmd *cobra.Command) (*config.Config, error) {
	if v.timeout < 0 {
		return nil, usage.Errorf("--timeout %s: want 0 or more", v.timeout)
	}
	if v.offline && v.file != "" && len(v.resources) > 0 {
		return nil, usage.Errorf("--resources: not with --offline and --config, which compare whole logs; leave it out")
	}
	if v.file == "" {
		var errs []error // about what a configuration would say
		if len(v.resources) == 0 {
			errs = append(errs, usage.Errorf("--resources is missing: name what the exporter streams, such as pods,deployments.apps, or give its --config"))
		}
		for _, name := range v.resources {
			if err := config.CheckResource(name); err != nil {
				errs = append(errs, usage.Errorf("--resources: %w", err))
			}
		}
		if len(v.sinks) == 0 {
			errs = append(errs, usage.Errorf("--sink is missing: give the URL of a sink as for exporter run, or the exporter's --config"))
		}
		if err := usage.Several("command line", errs...); err != nil {
			return nil, err
		}
		v.config.Resources, v.config.Sinks = v.resources, v.sinks
	}
	v.config.StateDir = ""
	cfg, err := v.loadChosen(v.sinks)
	if err == nil && v.file != "" && !cmd.Flags().Changed("state-dir") {
		v.stateDir = cfg.State.Dir
	}
	return cfg, err
}
