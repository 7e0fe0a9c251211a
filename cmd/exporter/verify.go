package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/destination"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/observe/console"
	"github.com/kubecdc/kubecdc/internal/observe/verify"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// verifier is what the flags of exporter verify say.
type verifier struct {
	flags
	target
	resources []string // as --resources names them; none is all
	sinks     []string // none is all
	output    string
	timeout   time.Duration // how long to wait until differences are proven
	offline   bool

	cfg *config.Config
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
			differences, err := v.run(cmd)
			switch {
			case err != nil:
				return usage.Wrap(err) // exit code 2: nothing was found out
			case differences == 1:
				return errors.New("verify found 1 difference")
			case differences > 1:
				return fmt.Errorf("verify found %d differences", differences)
			}
			return nil
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

// run compares one sink after the other. What could not be compared counts for more than what differs.
func (v *verifier) run(cmd *cobra.Command) (differences int, err error) {
	if v.cfg, err = v.configuration(cmd); err != nil {
		return 0, err
	}
	ctx, out := cmd.Context(), &console.Reports{Out: stdout(cmd), JSON: v.output == "json"}
	compare := func(s *config.Sink) (int, error) { return v.compareOffline(ctx, s, out) }
	if !v.offline {
		if compare, err = v.online(ctx, out); err != nil {
			return 0, err
		}
	}
	var errs []error
	for i := range v.cfg.Sinks {
		s := &v.cfg.Sinks[i]
		if s.Kind() == config.KindStdout && len(v.cfg.Sinks) > 1 && len(v.sinks) == 0 {
			out.Note("sink %s is standard output, which cannot be read back: it is left out", s.Name)
			continue
		}
		n, err := compare(s)
		differences, errs = differences+n, append(errs, err)
	}
	return differences, usage.Several("verify", errs...)
}

// online finds the streams, and compares sinks with what the API server has of them.
func (v *verifier) online(ctx context.Context, out *console.Reports) (compare func(*config.Sink) (int, error), err error) {
	cluster.NewLogger(io.Discard, v.cfg.Log)
	c, err := cluster.Find(ctx, v.access, v.cfg)
	if err != nil {
		return nil, err
	}
	if err := c.Identify(ctx); err != nil {
		return nil, err
	}
	if _, err := c.Resolve(ctx, c.Rest, v.cfg.Resources); err != nil {
		return nil, err
	}
	for _, left := range c.Chosen.Load().Waiting() {
		out.Note("resource %s is left out: %s", left.Name, left.Reason)
	}
	streams, err := c.Called(v.resources)
	if err != nil {
		return nil, err
	}
	return func(s *config.Sink) (differences int, err error) {
		found, err := (&comparison{target: v.target, sink: s, timeout: v.timeout, uid: c.UID}).compareSink(ctx, c, streams)
		if err != nil {
			return 0, err
		}
		if err = out.Show(found); err == nil && found.Undecided {
			err = fmt.Errorf("sink %s: %s", s.Name, found.Note)
		}
		return found.Differences(), err
	}, nil
}

// compareOffline holds the log of the sink against what it says of itself. It asks no API server, unless only that
// knows where the sink writes to.
func (v *verifier) compareOffline(ctx context.Context, s *config.Sink, out *console.Reports) (differences int, err error) {
	log := verify.NewDigests()
	reader, err := destination.Open(ctx, v.access, v.cfg, s, sink.Start{})
	if err == nil {
		err = errors.Join(reader.Read(ctx, log.Take), reader.Close())
	}
	found := log.Report()
	if err == nil && found.Digests == 0 {
		err = errors.New("its log has no digests to compare; set resolved: {every: 10s, digest: true} for it, and wait for two records of what is resolved")
	}
	if err != nil {
		return 0, fmt.Errorf("sink %s: %w", s.Name, err)
	}
	found.Sink, found.Kind = s.Name, s.Kind()
	for _, one := range found.Mismatch {
		differences += one.Times
	}
	return differences, out.ShowDigests(&found)
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
