// Command devcluster runs a real Kubernetes API server on its own etcd, on
// 127.0.0.1 and from one binary, for tests and for trying things out.
//
// It is a cluster without nodes and without controllers: objects are stored,
// validated, watched and expired as anywhere else, but nothing reconciles them.
// Everything it needs to come back after a stop or a kill -9 is in --data-dir.
//
// It says on stdout where its kubeconfig is when it is ready, and logs to stderr.
// With the argument compact before its flags it compacts a running etcd instead.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal stops cleanly; with the handler gone, a second one ends
	// the process at once.
	context.AfterFunc(ctx, restore)
	if err := execute(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "devcluster: %v\n", err)
		os.Exit(1)
	}
}

func execute(ctx context.Context, args []string) error {
	act := run
	if len(args) > 0 && args[0] == "compact" {
		act, args = compactNow, args[1:]
	}
	o := options{}
	flags := flag.NewFlagSet("devcluster [compact]", flag.ExitOnError)
	flags.StringVar(&o.dataDir, "data-dir", "", "directory for etcd's data, keys, ports and kubeconfig; required, created if missing")
	flags.StringVar((*string)(&o.role), "role", string(roleAll), "what this process runs: all, etcd or apiserver")
	flags.DurationVar(&o.compactionInterval, "compaction-interval", 5*time.Minute, "how often etcd's history is compacted; 0 keeps all of it")
	flags.DurationVar(&o.requestTimeout, "request-timeout", 5*time.Second, "limit of one request, other than a watch")
	flags.StringVar(&o.apiServer, "apiserver", "", "a kube-apiserver to run in place of the one in this program, such as one of another version")
	_ = flags.Parse(args) // it exits on an error
	o.apiServerFlags = flags.Args()
	if o.dataDir == "" {
		return errors.New("--data-dir is missing: name a directory for the cluster's data")
	}
	return act(ctx, o)
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
	role               role
	compactionInterval time.Duration
	requestTimeout     time.Duration
	apiServer          string   // path of another kube-apiserver; "" is the one within
	apiServerFlags     []string // what follows "--"
}
