package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// startLimit is generous: a start takes seconds, but not on a machine that is
	// busy compiling.
	startLimit = 2 * time.Minute

	// etcdPortLimit is how long an API server waits for an etcd that is started
	// beside it to say where it listens.
	etcdPortLimit = 10 * time.Second

	// otherPortLimit is how long the kernel may take for what a killed process has left.
	otherPortLimit = 5 * time.Second

	pollInterval = 50 * time.Millisecond
)

// run holds the cluster's life: etcd first and last, the API server within.
func run(ctx context.Context, o options) error {
	dir, err := openDataDir(o.dataDir)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	if o.role.etcd() {
		stop, err := serveEtcd(ctx, group, dir, o)
		if err != nil {
			return startError(ctx, err)
		}
		defer stop()
	}
	if o.role.apiServer() {
		group.Go(func() error { return startError(ctx, serveAPI(ctx, group, dir, o)) })
	} else {
		fmt.Printf("ready: etcd of %s\n", dir)
	}
	return group.Wait()
}

// startError hides the error of a start that was called off by a signal: that is
// a clean stop.
func startError(ctx context.Context, err error) error {
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return nil
	}
	return err
}

func serveEtcd(ctx context.Context, group *errgroup.Group, dir dataDir, o options) (stop func(), err error) {
	port, err := dir.port(roleEtcd)
	if err != nil {
		return nil, err
	}
	if err := checkPort(roleEtcd, port); err != nil {
		return nil, err
	}
	etcd, err := startEtcd(ctx, dir, port)
	if err != nil {
		return nil, err
	}
	group.Go(func() error { return watchEtcd(ctx, etcd) })
	return func() { stopEtcd(etcd) }, nil
}

// serveAPI starts the API server in the group, and beside it what tells the
// world when it is ready.
func serveAPI(ctx context.Context, group *errgroup.Group, dir dataDir, o options) error {
	began := time.Now()
	etcdPort, err := awaitEtcdPort(ctx, dir)
	if err != nil {
		return err
	}
	port, err := dir.port(roleAPIServer)
	if err != nil {
		return err
	}
	if err := awaitPort(ctx, o, port); err != nil {
		return err
	}
	if err := dir.createSecrets(); err != nil {
		return err
	}
	flags := apiServerFlags(dir, o, etcdPort, port)
	if o.apiServer != "" {
		group.Go(func() error { return runOther(ctx, o.apiServer, flags) })
	} else {
		group.Go(func() error { return runAPIServer(ctx, flags) })
	}
	group.Go(func() error { return announce(ctx, dir, began) })
	return nil
}

// awaitPort explains a port that is taken. An API server of its own process may live a moment longer than the one that
// was killed with it.
func awaitPort(ctx context.Context, o options, port int) error {
	if o.apiServer == "" {
		return checkPort(roleAPIServer, port)
	}
	ctx, cancel := context.WithTimeout(ctx, otherPortLimit)
	defer cancel()
	var taken error
	if err := poll(ctx, func() bool { taken = checkPort(roleAPIServer, port); return taken == nil }); err != nil {
		return taken
	}
	return nil
}

func awaitEtcdPort(ctx context.Context, dir dataDir) (port int, err error) {
	ctx, cancel := context.WithTimeout(ctx, etcdPortLimit)
	defer cancel()
	missing := poll(ctx, func() bool {
		port, err = dir.knownPort(roleEtcd)
		return !errors.Is(err, fs.ErrNotExist)
	})
	if missing != nil {
		return 0, fmt.Errorf("wait for etcd: %w: %w; start the etcd of this directory first, with --role etcd", missing, err)
	}
	return port, err
}

// poll calls done until it holds, or returns ctx's error.
func poll(ctx context.Context, done func() bool) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
	return nil
}
