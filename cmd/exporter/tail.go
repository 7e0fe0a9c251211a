package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubecdc/kubecdc/internal/app/destination"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/observe/console"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// tailPoll is how often a sink's log is read on.
const tailPoll = 300 * time.Millisecond

// tailer is what the flags of exporter tail say.
type tailer struct {
	flags
	target
	sink      string
	filter    console.Filter
	since     string
	output    string
	diff      bool
	follow    bool
	resources []string
}

func newTailCommand() *cobra.Command {
	t := new(tailer)
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Follow the changes in a sink or of a running exporter",
		Long: `tail prints a line for each change as it comes. With --sink, or a configuration that has one sink, it reads the sink's
log; without, it follows the running exporter that owns the state directory, which tells names and no more.

Of Kafka it reads the topics that the brokers have, by the times of their records, and asks no API server, unless
nothing but the resource is in the name of a topic.

With --diff it shows what changed in each object: the path, the old value and the new one. For that it reads the sink's
log from its beginning. Of Secrets it shows the values that are keyed hashes, and no others.

Lines are coloured where they go to a terminal, unless NO_COLOR is set.`,
		Example: `  exporter tail
  exporter tail -f config.yaml --sink bus --resources pods -n shop --diff
  exporter tail --sink file:///var/log/changes.ndjson --since 10m --op deleted
  exporter tail --sink kafka://localhost:9092
  exporter tail -f config.yaml --sink lake --since start -o json | jq .name`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := t.run(cmd.Context(), cmd)
			if cmd.Context().Err() != nil {
				return nil // it was stopped, which is how a tail ends
			}
			return err
		},
	}
	t.register(cmd)
	return cmd
}

func (t *tailer) register(cmd *cobra.Command) {
	t.target.register(cmd)
	set := cmd.Flags()
	set.StringVarP(&t.file, "config", "f", "", "configuration file (YAML) of the exporter")
	t.registerAccess(set, "kubeconfig file, for the cluster's name, where --config has none")
	set.StringVar(&t.sink, "sink", "", "name of a configured sink; without --config, its URL: file://, kafka:// or nats://, as for exporter run")
	set.StringSliceVar(&t.resources, "resources", nil, "only these resources: pods, deployments.apps")
	set.StringVarP(&t.filter.Namespace, "namespace", "n", "", "only this namespace")
	set.StringVar(&t.filter.Name, "name", "", "only objects of this name; * stands for any text")
	set.StringSliceVar(&t.filter.Ops, "op", nil, "only these operations: "+strings.Join(opNames(), ", "))
	set.StringVar(&t.since, "since", "", "begin at a time: 10m ago, 2026-11-21T02:33:14Z, or start (default: what comes from now on)")
	set.BoolVar(&t.follow, "follow", true, "go on when the end is reached")
	set.BoolVar(&t.diff, "diff", false, "show what changed between two versions of an object; needs a sink")
	set.StringVarP(&t.output, "output", "o", "text", "text, or json: an object a line")
}

func (t *tailer) run(ctx context.Context, cmd *cobra.Command) error {
	since, err := t.checkFlags(cmd)
	if err != nil {
		return err
	}
	screen := stdout(cmd)
	style := console.Style{JSON: t.output == "json", Colour: console.Colourful(screen, os.LookupEnv)}
	log := &console.Log{Printer: console.NewPrinter(screen, style), Filter: t.filter, Since: since, Diff: t.diff}
	if t.follow {
		log.Poll = tailPoll
	}
	if t.sink == "" && t.file == "" {
		client, clientErr := t.client()
		if clientErr != nil {
			return clientErr
		}
		err = log.FollowEvents(client.Events(ctx))
	} else {
		err = t.followSink(ctx, log)
	}
	return errors.Join(err, log.Printer.Flush())
}

func (t *tailer) checkFlags(cmd *cobra.Command) (since time.Time, err error) {
	for i, name := range t.resources {
		t.resources[i] = strings.ToLower(name)
	}
	t.filter.Resources = t.resources
	if err := usage.Several("command line", checkResourceFilter(t.resources),
		checkNamespaceFilter(t.filter.Namespace), checkNamePattern(t.filter.Name), checkOps(t.filter.Ops)); err != nil {
		return since, err
	}
	if t.sink == "" && cmd.Flags().Changed("sink") {
		return since, usage.Errorf("--sink is empty: give the name of a configured sink, or without --config its URL")
	}
	if t.diff && t.sink == "" && t.file == "" {
		return since, usage.Errorf("--diff needs a sink, which has the objects; a running exporter shows only names: give --sink, or --config")
	}
	if since, err = parseSince(t.since, time.Now()); err != nil {
		return since, usage.Errorf("--since %q: want a duration such as 10m, a time such as 2026-11-21T02:33:14Z, or start", t.since)
	}
	return since, nil
}

// parseSince is zero for the start of the log.
func parseSince(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return now, nil
	}
	if text == "start" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	return time.Parse(time.RFC3339Nano, text)
}

// followSink shows what the sink's log has.
func (t *tailer) followSink(ctx context.Context, log *console.Log) error {
	start := sink.Start{End: t.since == "", Since: log.Since}
	if t.since == "" {
		log.Since = time.Time{} // what comes is of now, whatever the clock here says
	}
	if t.diff {
		start = sink.Start{} // the versions before are needed
		log.Silent = t.since == ""
	}
	cfg, s, err := t.chosenSink()
	if err != nil {
		return err
	}
	reader, err := destination.Open(ctx, t.access, cfg, s, start)
	if err != nil {
		return err
	}
	return errors.Join(log.Follow(ctx, reader), reader.Close())
}

// chosenSink is the one that is meant, and its configuration.
func (t *tailer) chosenSink() (*config.Config, *config.Sink, error) {
	if t.file == "" {
		t.config.Resources, t.config.Sinks = t.resources, []string{t.sink}
		if len(t.resources) == 0 {
			t.config.Resources = []string{"pods"} // a configuration needs some; files and streams have what they have
		}
	}
	cfg, err := t.loadChosen(named(t.sink))
	if err != nil {
		return nil, nil, err
	}
	if len(cfg.Sinks) > 1 {
		return nil, nil, usage.Errorf("the configuration has several sinks: choose one of %s with --sink", strings.Join(cfg.SinkNames(), ", "))
	}
	s := &cfg.Sinks[0]
	if t.file == "" && destination.NeedsStreams(s) && len(t.resources) == 0 {
		return nil, nil, usage.Errorf("--resources is missing: there is no text in the topic that tells the sink's topics from others: name the resources, or have text in topic")
	}
	return cfg, s, nil
}
