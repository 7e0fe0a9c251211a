package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/control"
)

// version is set by the linker.
var version = "devel"

// group makes a command that is nothing without one of its own commands say so.
func group(cmd *cobra.Command, own ...*cobra.Command) *cobra.Command {
	cmd.Args = noArguments
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.SuggestionsMinimumDistance = 2
	cmd.AddCommand(own...)
	return cmd
}

// nearFlag suggests a flag where an unknown one was given.
func nearFlag(cmd *cobra.Command, err error) string {
	unknown, is := errors.AsType[*pflag.NotExistError](err)
	if !is {
		return ""
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := config.Closest(unknown.GetSpecifiedName(), names); near != "" {
		return "did you mean --" + near + "? "
	}
	return ""
}

// noArguments refuses what is neither a flag nor a command.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("unexpected argument %q: ", withoutLogin(args[0]))
	if cmd.HasAvailableSubCommands() {
		text = fmt.Sprintf("unknown command %q: ", withoutLogin(args[0]))
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			text += fmt.Sprintf("did you mean %s? ", strings.Join(near, " or "))
		}
	}
	return usage.Wrap(errors.New(text + "see " + cmd.CommandPath() + " --help"))
}

// withoutLogin hides what may be the password of a URL that was put in the wrong place.
func withoutLogin(text string) string {
	if at := strings.LastIndex(text, "@"); at >= 0 {
		return "…" + text[at:]
	}
	return text
}

// stopTimeout is how long a stop may take to deliver what is queued. Kubernetes kills a pod after 30 s.
const stopTimeout = 20 * time.Second

// flags are what run, dev and check have in common.
type flags struct {
	file    string
	access  cluster.Access
	config  config.Flags
	task    int  // that is meant, of several; 0 is none
	several bool // the command is for all tasks of the configuration, unless one is named
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
	set.StringVar(&f.config.Cluster, "cluster", "", "name of the cluster in events (default: the context's name); of several in the configuration, the one that is meant")
	set.IntVar(&f.task, "task", 0, "number of the task that is meant, where the configuration has several")
}

// load reads the file, puts the flags over it, and checks the result.
func (f *flags) load() (*config.Config, error) { return f.loadWith(func(*config.Config) {}) }

func (f *flags) loadWith(adjust func(*config.Config)) (*config.Config, error) {
	cfg := new(config.Config)
	if f.file != "" {
		var err error
		if cfg, err = config.Load(f.file, os.LookupEnv); err != nil {
			return nil, err
		}
	}
	over := f.config
	if len(cfg.Clusters) > 0 {
		over.Cluster = "" // it names one of them
	}
	if err := config.Overlay(cfg, over); err != nil {
		return nil, err
	}
	adjust(cfg)
	if err := cfg.Validate(); err != nil || !cfg.IsSplit() && f.task == 0 {
		return cfg, err
	}
	return f.choose(cfg)
}

// choose is the configuration of the named cluster and task, or of all where the command is for all and none is named.
func (f *flags) choose(cfg *config.Config) (*config.Config, error) {
	tasks := cfg.AllTasks()
	var clusters []string
	for _, of := range cfg.Clusters {
		clusters = append(clusters, of.Name)
	}
	isNamed := len(clusters) == 0 || slices.Contains(clusters, f.config.Cluster)
	switch names := strings.Join(clusters, ", "); {
	case isNamed:
	case f.config.Cluster != "":
		return nil, usage.Errorf("--cluster %q: the configuration has none of that name; name one of %s", f.config.Cluster, names)
	case !f.several || f.task != 0:
		return nil, usage.Errorf("--cluster: the configuration has several; name one of %s", names)
	case cfg.HA == nil && (f.access.Kubeconfig != "" || f.access.Context != ""): // else they are of the Leases
		return nil, usage.Errorf("--kubeconfig and --context: each cluster of the configuration has its own; name one with --cluster, of %s", names)
	default:
		return cfg, nil
	}
	switch count := tasks[0].Count; {
	case f.task > max(count, 1):
		return nil, usage.Errorf("--task %d: the configuration has %d", f.task, max(count, 1))
	case f.task == 0 && count > 0 && f.several:
		cfg.Clusters = slices.DeleteFunc(cfg.Clusters, func(of config.ClusterOf) bool { return of.Name != f.config.Cluster })
		return cfg, nil
	case f.task == 0 && count > 1:
		return nil, usage.Errorf("--task: the configuration has several; name one from 1 to %d", count)
	}
	for _, of := range tasks {
		if of.Number == max(f.task, 1) && (of.Cluster.Name == "" || of.Cluster.Name == f.config.Cluster) {
			f.reach(of.Cluster, cfg.HA != nil)
			return cfg.Of(of), nil
		}
	}
	return cfg, nil
}

// reach makes the cluster the one that is reached.
func (f *flags) reach(of config.ClusterOf, sharesLeases bool) {
	home := f.access
	if sharesLeases = sharesLeases && of.Name != ""; sharesLeases {
		f.access.Home = &home
	}
	if sharesLeases || f.access.Kubeconfig == "" && f.access.Context == "" {
		f.access = f.access.Of(of)
	}
}

// loadChosen is what load makes, with the named sinks of a file alone; none is all. Without a file, a name on the
// command line that the API server does not serve is a mistake.
func (f *flags) loadChosen(sinks []string) (*config.Config, error) {
	cfg, err := f.load()
	if err != nil {
		return nil, err
	}
	if f.file == "" {
		for i := range cfg.Resources {
			cfg.Resources[i].Required = true
		}
	}
	if f.file == "" || len(sinks) == 0 {
		return cfg, nil
	}
	for _, name := range sinks {
		if have := cfg.SinkNames(); !slices.Contains(have, name) {
			return nil, usage.Errorf("--sink %q: the configuration has no such sink: it has %s", withoutLogin(name), strings.Join(have, ", "))
		}
	}
	cfg.Sinks = slices.DeleteFunc(cfg.Sinks, func(s config.Sink) bool { return !slices.Contains(sinks, s.Name) })
	return cfg, nil
}

// named are the names that a flag of one name gives.
func named(sink string) []string {
	if sink == "" {
		return nil
	}
	return []string{sink}
}

// A filter for what nothing is called takes nothing, without a word. So what cannot be a name is refused.

// checkResourceFilter wants resources as records name them.
func checkResourceFilter(names []string) error {
	for _, name := range names {
		_, group, _ := strings.Cut(name, ".")
		version, rest, found := strings.Cut(group, ".") // as kubectl takes it: v1.apps
		versioned := found && rest != "" && len(version) > 1 && version[0] == 'v' && strings.Trim(version[1:2], "0123456789") == ""
		if strings.Contains(name, "*") || versioned || config.CheckResource(name) != nil {
			return usage.Errorf("--resources %q: want a resource without a namespace, a version and *: pods or deployments.apps", withoutLogin(name))
		}
	}
	return nil
}

func opNames() []string {
	var names []string
	for op := change.Added; op <= change.Actor; op++ {
		if op != change.Bookmark {
			names = append(names, op.String())
		}
	}
	return names
}

// checkNamespaceFilter takes "" for all.
func checkNamespaceFilter(namespace string) error {
	if err := config.CheckNamespace(namespace); namespace != "" && err != nil {
		return usage.Errorf("--namespace: %w", err)
	}
	return nil
}

// checkNamePattern takes "" for all.
func checkNamePattern(pattern string) error {
	if _, err := path.Match(pattern, ""); err != nil || strings.Contains(pattern, "/") {
		return usage.Errorf("--name %q: want an object's name, in which * stands for any text", pattern)
	}
	return nil
}

// checkShared checks the flags that several commands have: what is printed is as usual, or JSON, and one place is
// named.
func checkShared(set *pflag.FlagSet) error {
	if f := set.Lookup("output"); f != nil && f.Value.String() != f.DefValue && f.Value.String() != "json" {
		return usage.Errorf("--output %q: want %s or json", f.Value, f.DefValue)
	}
	for _, other := range []string{"server", "dir"} {
		if set.Changed(other) && set.Changed("state-dir") {
			return usage.Errorf("--%s and --state-dir: give one of them", other)
		}
	}
	return nil
}

func checkOps(ops []string) error {
	for _, op := range ops {
		if !slices.Contains(opNames(), op) {
			return usage.Errorf("--op %q: want %s", op, strings.Join(opNames(), ", "))
		}
	}
	return nil
}

// tokenVariable is the environment's variable with the token of an exporter at --server, which is the third word of the
// file address in its state directory. A flag would show it to everybody on the host.
const tokenVariable = "KUBECDC_TOKEN"

// defaultStateDir is the configuration's default.
const defaultStateDir = "/var/lib/kubecdc"

// target says which exporter a command is for.
type target struct {
	stateDir string
	server   string
}

func (t *target) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.stateDir, "state-dir", defaultStateDir, "state directory of the exporter, which says where it listens")
	cmd.Flags().StringVar(&t.server, "server", "", "address of the exporter, instead of --state-dir: http://127.0.0.1:8080; needs "+tokenVariable)
}

// client finds the running exporter. It returns a *control.NotRunningError where the state is nobody's.
func (t *target) client() (*control.Client, error) {
	if t.server == "" {
		return control.Locate(t.stateDir)
	}
	client, err := control.NewClient(t.server, os.Getenv(tokenVariable))
	if err != nil {
		return nil, usage.Errorf("--server %q: %w", withoutLogin(t.server), err)
	}
	return client, nil
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  exporter version",
		Args:    noArguments,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintf(stdout(cmd), "exporter %s %s %s/%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		},
	}
}
