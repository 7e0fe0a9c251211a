package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/component-base/version/verflag"
)

// usageError is a mistake on the command line, as opposed to a failure at work.
type usageError struct{ error }

const runExample = `  # etcd and API server in one process; Ctrl-C stops both
  devcluster --data-dir /tmp/dev

  # as two processes, so that each can be killed alone
  devcluster --data-dir /tmp/dev --role etcd &
  devcluster --data-dir /tmp/dev --role apiserver &

  # flags of kube-apiserver itself follow "--"
  devcluster --data-dir /tmp/dev -- --event-ttl=1m

  kubectl --kubeconfig /tmp/dev/kubeconfig get namespaces`

func newCommand(console *console) *cobra.Command {
	o := options{}
	cmd := &cobra.Command{
		Use:           "devcluster --data-dir DIR [flags] [-- KUBE-APISERVER-FLAGS]",
		Short:         "A Kubernetes API server with its own etcd on 127.0.0.1, for development",
		Example:       runExample,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          onlyAfterDash,
		// The API server's packages define --version for every program they are in.
		PersistentPreRun: func(*cobra.Command, []string) { verflag.PrintAndExitIfRequested() },
		RunE: func(cmd *cobra.Command, args []string) error {
			o.apiServerFlags = args
			if err := o.validate(); err != nil {
				return err
			}
			return run(cmd.Context(), o, console)
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	cmd.CompletionOptions.DisableDefaultCmd = true
	o.addFlags(cmd)
	cmd.AddCommand(newCompactCommand(&o, console), newWaitCommand(&o, console))
	return cmd
}

func newCompactCommand(o *options, console *console) *cobra.Command {
	return &cobra.Command{
		Use:   "compact --data-dir DIR",
		Short: "Compact the running etcd at its present revision and print that revision",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return compactNow(cmd.Context(), *o, console)
		},
	}
}

func newWaitCommand(o *options, console *console) *cobra.Command {
	timeout := time.Minute
	cmd := &cobra.Command{
		Use:   "wait --data-dir DIR",
		Short: "Wait until the API server of DIR is ready and its kubeconfig is written",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return waitReady(ctx, *o, console)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", timeout, "how long to wait")
	return cmd
}

// onlyAfterDash passes what follows "--" on to kube-apiserver and refuses the rest.
func onlyAfterDash(cmd *cobra.Command, args []string) error {
	if at := cmd.ArgsLenAtDash(); at > 0 || (at < 0 && len(args) > 0) {
		return usageError{fmt.Errorf("unknown argument %q; see devcluster --help", args[0])}
	}
	return nil
}

func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("unknown argument %q; see devcluster --help", args[0])}
	}
	return nil
}

// role says which halves of the cluster a process holds.
type role string

const (
	roleAll       role = "all"
	roleEtcd      role = "etcd"
	roleAPIServer role = "apiserver"
)

func (r role) etcd() bool      { return r != roleAPIServer }
func (r role) apiServer() bool { return r != roleEtcd }

type options struct {
	dataDir            string
	kubeconfig         string
	role               string
	etcdPort           int
	port               int
	compactionInterval time.Duration
	requestTimeout     time.Duration
	quiet              bool
	apiServer          string // path of another kube-apiserver; "" is the one within
	apiServerFlags     []string
}

func (o *options) addFlags(cmd *cobra.Command) {
	all := cmd.PersistentFlags()
	all.StringVar(&o.dataDir, "data-dir", "", "directory for etcd's data, keys, ports and logs; required, created if missing")
	all.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig to write, with the contexts dev (admin) and limited (default DIR/kubeconfig)")
	own := cmd.Flags()
	own.StringVar(&o.role, "role", string(roleAll), "what this process runs: all, etcd or apiserver")
	own.IntVar(&o.etcdPort, "etcd-port", 0, "port of etcd on 127.0.0.1; 0 keeps the one of DIR, or picks a free one")
	own.IntVar(&o.port, "port", 0, "port of the API server on 127.0.0.1; 0 keeps the one of DIR, or picks a free one")
	own.DurationVar(&o.compactionInterval, "compaction-interval", 5*time.Minute, "how often etcd's history is compacted; 0 keeps all of it")
	own.DurationVar(&o.requestTimeout, "request-timeout", 5*time.Second, "limit of one request, other than a watch")
	own.StringVar(&o.apiServer, "apiserver", "", "a kube-apiserver to run in place of the one in this program, such as one of another version")
	own.BoolVar(&o.quiet, "quiet", false, "log to DIR/<role>.log instead of the terminal")
}

func (o *options) validate() error {
	var errs []error
	if o.dataDir == "" {
		errs = append(errs, errors.New("--data-dir is missing: name a directory for the cluster's data"))
	}
	if known := []string{string(roleAll), string(roleEtcd), string(roleAPIServer)}; !slices.Contains(known, o.role) {
		errs = append(errs, fmt.Errorf("--role %q is unknown: use one of %s", o.role, strings.Join(known, ", ")))
	}
	if o.compactionInterval < 0 {
		errs = append(errs, fmt.Errorf("--compaction-interval %s is negative: use 0 to switch compaction off", o.compactionInterval))
	}
	if o.requestTimeout <= 0 {
		errs = append(errs, fmt.Errorf("--request-timeout %s is not positive", o.requestTimeout))
	}
	if len(errs) > 0 {
		return usageError{errors.Join(errs...)}
	}
	return nil
}
