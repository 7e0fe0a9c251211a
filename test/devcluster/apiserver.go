package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	serveroptions "k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

const apiServerStopLimit = 4 * time.Second

// runAPIServer serves until ctx ends. It takes the place of kube-apiserver's own
// command, which would claim the process's signal handlers for itself.
func runAPIServer(ctx context.Context, flags []string) error {
	completed, err := apiServerOptions(ctx, flags)
	if err != nil {
		return fmt.Errorf("configure API server: %w", err)
	}
	defer logs.FlushLogs()
	served := make(chan error, 1)
	go func() { served <- app.Run(ctx, completed) }()
	select {
	case err = <-served:
	case <-ctx.Done():
		err = awaitStop(served)
	}
	if err != nil {
		return fmt.Errorf("run API server: %w", err)
	}
	if ctx.Err() == nil {
		return errors.New("run API server: it stopped by itself")
	}
	return nil
}

// awaitStop gives up on an API server that cannot stop: without its etcd, one
// waits for ever. Ending it with the process loses nothing, its state is etcd's.
func awaitStop(served <-chan error) error {
	select {
	case err := <-served:
		return err
	case <-time.After(apiServerStopLimit):
		klog.Warningf("API server did not stop within %s, ending it", apiServerStopLimit)
		return nil
	}
}

func apiServerOptions(ctx context.Context, flags []string) (serveroptions.CompletedOptions, error) {
	none := serveroptions.CompletedOptions{}
	o := serveroptions.NewServerRunOptions()
	set := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	for _, f := range o.Flags().FlagSets {
		set.AddFlagSet(f)
	}
	if err := set.Parse(flags); err != nil {
		return none, err
	}
	components := o.GenericServerRunOptions.ComponentGlobalsRegistry
	if err := components.Set(); err != nil {
		return none, err
	}
	var gates featuregate.FeatureGate = components.FeatureGateFor(basecompatibility.DefaultKubeComponent)
	if err := logsapi.ValidateAndApply(o.Logs, gates); err != nil {
		return none, err
	}
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	completed, err := o.Complete(ctx)
	if err != nil {
		return none, err
	}
	return completed, errors.Join(completed.Validate()...)
}

// apiServerFlags are the flags of kube-apiserver; the user's own come last and win.
func apiServerFlags(dir dataDir, o options, etcdPort, port int) []string {
	return append([]string{
		"--etcd-servers=http://" + address(etcdPort),
		"--etcd-compaction-interval=" + o.compactionInterval.String(),
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=" + dir.cert(),
		"--tls-private-key-file=" + dir.certKey(),
		"--token-auth-file=" + dir.tokens(),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + dir.accountKey(),
		"--service-account-signing-key-file=" + dir.accountKey(),
		"--service-cluster-ip-range=10.96.0.0/16",
		// No controller creates service accounts, so none may be asked of pods.
		"--disable-admission-plugins=ServiceAccount",
		"--allow-privileged=true",
		// Loopback may not be an endpoint, and without these two a machine without
		// a network could not start.
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		// A stop ends open watches at once instead of after the request timeout.
		"--request-timeout=" + o.requestTimeout.String(),
		"--shutdown-watch-termination-grace-period=1s",
	}, o.apiServerFlags...)
}
