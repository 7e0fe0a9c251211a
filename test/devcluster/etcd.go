package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
	"google.golang.org/grpc/grpclog"
)

const (
	// compactRevKey is where API servers tell each other how far etcd is
	// compacted. They watch it, to expire what they hold in memory.
	compactRevKey = "compact_rev_key"

	// walSegment replaces etcd's 64 MiB, two of which it allocates at once: much
	// for a cluster in a temporary directory.
	walSegment = 8 << 20

	etcdStartLimit = 30 * time.Second
	etcdStopLimit  = time.Second
)

func startEtcd(ctx context.Context, dir dataDir, port int) (*embed.Etcd, error) {
	wal.SegmentSizeBytes = walSegment
	etcd, err := embed.StartEtcd(etcdConfig(dir, port))
	if err != nil {
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	select {
	case <-etcd.Server.ReadyNotify():
		return etcd, nil
	case err = <-etcd.Err():
	case <-etcd.Server.StopNotify():
		err = errors.New("it stopped by itself")
	case <-time.After(etcdStartLimit):
		err = fmt.Errorf("not ready after %s", etcdStartLimit)
	case <-ctx.Done():
		err = ctx.Err()
	}
	stopEtcd(etcd)
	return nil, fmt.Errorf("start etcd: %w", err)
}

func etcdConfig(dir dataDir, port int) *embed.Config {
	cfg := embed.NewConfig()
	cfg.Name = "devcluster"
	cfg.Dir = dir.etcd()
	cfg.LogLevel = "warn"
	cfg.ListenClientUrls = []url.URL{{Scheme: "http", Host: address(port)}}
	cfg.AdvertiseClientUrls = cfg.ListenClientUrls
	// A single member needs no port for peers; the address it would advertise to
	// them keeps its default, as a part of the member's name.
	cfg.ListenPeerUrls = nil
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	// Bookmarks of quiet resources move only with etcd's progress notifications.
	// The default of ten minutes would outlast any test. Each second they would
	// be most of what an idle cluster costs.
	cfg.WatchProgressNotifyInterval = 2 * time.Second
	// What is written survives a kill of the process without fsync: the kernel has
	// it. Only a crash of the machine would lose data, and this is not production.
	cfg.UnsafeNoFsync = true
	// A member of one elects itself; there is nobody to wait for.
	cfg.ElectionMs = 5 * cfg.TickMs
	// The default of zero would log every single request as slow.
	cfg.WarningUnaryRequestDuration = embed.DefaultWarningUnaryRequestDuration
	return cfg
}

// watchEtcd returns when etcd fails, or nil when ctx ends.
func watchEtcd(ctx context.Context, etcd *embed.Etcd) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-etcd.Err():
		return fmt.Errorf("serve etcd: %w", err)
	case <-etcd.Server.StopNotify():
		return errors.New("serve etcd: it stopped by itself")
	}
}

// stopEtcd gives clients that hold watches open a moment, then ends them with
// the process: etcd alone would wait seven seconds for them, and a member
// without fsync is built to be killed anyway.
func stopEtcd(etcd *embed.Etcd) {
	closed := make(chan struct{})
	go func() {
		etcd.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(etcdStopLimit):
	}
}

// compactNow drops etcd's history up to the present revision and tells the API
// server, so that old resource versions are gone from both.
func compactNow(ctx context.Context, o options) error {
	port, err := dataDir(o.dataDir).knownPort(roleEtcd)
	if err != nil {
		return err
	}
	// One line is the whole answer: no log of the client belongs beside it.
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + address(port)}, Logger: zap.NewNop()})
	if err != nil {
		return fmt.Errorf("connect to etcd: %w", err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, o.requestTimeout)
	defer cancel()
	revision, err := compact(ctx, client)
	if err != nil {
		return fmt.Errorf("compact etcd at %s: %w; is it running?", address(port), err)
	}
	fmt.Println(revision)
	return nil
}

func compact(ctx context.Context, client *clientv3.Client) (int64, error) {
	now, err := client.Get(ctx, compactRevKey)
	if err != nil {
		return 0, err
	}
	revision := now.Header.Revision
	if _, err := client.Put(ctx, compactRevKey, strconv.FormatInt(revision, 10)); err != nil {
		return 0, err
	}
	_, err = client.Compact(ctx, revision)
	return revision, err
}
