// Package testcluster gives tests a real Kubernetes API server on its own etcd:
// one that can be killed, restarted on its data, and compacted at will.
//
// The server is the devcluster program of test/devcluster. It is built on first
// use and cached. It has no nodes and no controllers. With
// KUBECDC_KUBERNETES the API server is of another version; see test/matrix.
package testcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubecdc/kubecdc/test/matrix"
)

// The users of a cluster. Limited may do nothing until a test binds a role to it;
// the names are also those of their RBAC subjects.
const (
	Admin   = "admin"
	Limited = "limited"
)

// Options describe a cluster. The zero value is a good one for most tests.
type Options struct {
	// DataDir keeps the cluster's data, keys and ports. A cluster started on the
	// directory of an earlier one continues it. Empty means a temporary directory
	// that Stop removes.
	DataDir string

	// SplitProcesses runs etcd and API server as two processes, so that each can
	// be killed alone. Otherwise one process holds both.
	SplitProcesses bool

	// CompactionInterval is how often the API server compacts etcd's history. Zero
	// means the default of five minutes; a negative one keeps all history, until
	// Compact.
	CompactionInterval time.Duration

	// Building, where set, is told how many packages are compiled, now and then.
	Building func(packages int)

	// APIServerFlags are further flags of kube-apiserver, such as --event-ttl=1m.
	APIServerFlags []string
}

// Cluster is a running API server with its etcd. Its methods may not be called
// at the same time, other than those that only return how to reach it.
type Cluster struct {
	options   Options
	binary    string
	apiServer string // of another version; "" is the one of the binary
	temporary bool   // DataDir is ours to remove
	config    *clientcmdapi.Config

	api  *process // the API server, or both; nil while killed or stopped
	etcd *process // nil also where one process holds both
}

// Start starts a cluster and returns when it is ready. ctx limits the start, and
// the build before it, not the cluster's life: that ends with Stop, or with this
// process.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	binary, err := build(ctx, options.Building)
	if err != nil {
		return nil, err
	}
	other, err := matrix.APIServer(ctx)
	if err != nil {
		return nil, err
	}
	c := &Cluster{options: options, binary: binary, apiServer: other}
	if options.DataDir == "" {
		if c.options.DataDir, err = os.MkdirTemp("", "devcluster-"); err != nil {
			return nil, fmt.Errorf("create data directory: %w", err)
		}
		c.temporary = true
	}
	if err := os.MkdirAll(c.options.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("create data directory: %w", err)
	}
	if err := c.startAll(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *Cluster) startAll(ctx context.Context) error {
	if c.options.SplitProcesses {
		if err := c.StartEtcd(ctx); err != nil {
			return err
		}
	}
	if err := c.StartAPIServer(ctx); err != nil {
		return err
	}
	var err error
	if c.config, err = clientcmd.LoadFromFile(c.Kubeconfig()); err != nil {
		return fmt.Errorf("load kubeconfig: %w", err)
	}
	return nil
}

// DataDir returns the cluster's directory, which also holds its logs.
func (c *Cluster) DataDir() string { return c.options.DataDir }

// Kubeconfig returns the path of a kubeconfig with the contexts dev, the current
// one, for Admin, and limited for Limited. It stays valid over restarts.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.options.DataDir, "kubeconfig") }

// RESTConfig returns how Admin, who may do everything, reaches the cluster. It
// limits no rates.
func (c *Cluster) RESTConfig() *rest.Config { return c.restConfig("dev") }

// LimitedRESTConfig is RESTConfig for Limited.
func (c *Cluster) LimitedRESTConfig() *rest.Config { return c.restConfig("limited") }

func (c *Cluster) restConfig(context string) *rest.Config {
	user, cluster := c.config.AuthInfos[c.config.Contexts[context].AuthInfo], c.config.Clusters[c.config.Contexts[context].Cluster]
	return &rest.Config{
		Host:            cluster.Server,
		BearerToken:     user.Token,
		TLSClientConfig: rest.TLSClientConfig{CAData: cluster.CertificateAuthorityData},
		QPS:             -1,
	}
}

// Token returns the bearer token of Admin or Limited, empty for anybody else.
func (c *Cluster) Token(user string) string {
	if info := c.config.AuthInfos[user]; info != nil {
		return info.Token
	}
	return ""
}

// StartAPIServer starts the API server again, at its old address, after
// KillAPIServer or StopAPIServer, and returns when it is ready.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	if c.api != nil {
		return errors.New("start API server: it is running; kill or stop it first")
	}
	role := "all"
	if c.options.SplitProcesses {
		role = "apiserver"
	}
	var err error
	c.api, err = c.start(ctx, role)
	return err
}

// KillAPIServer ends the API server as kill -9 does. Without SplitProcesses, etcd
// dies with it.
func (c *Cluster) KillAPIServer() { kill(&c.api) }

// StopAPIServer ends the API server as a rolling restart does: open watches end
// cleanly. Without SplitProcesses, etcd stops too.
func (c *Cluster) StopAPIServer() error { return stop(&c.api) }

// StartEtcd starts etcd again after KillEtcd. It needs SplitProcesses.
func (c *Cluster) StartEtcd(ctx context.Context) error {
	if !c.options.SplitProcesses {
		return errors.New("start etcd: it is no process of its own; set SplitProcesses")
	}
	if c.etcd != nil {
		return errors.New("start etcd: it is running; kill it first")
	}
	var err error
	c.etcd, err = c.start(ctx, "etcd")
	return err
}

// KillEtcd ends etcd as kill -9 does. Without SplitProcesses it does nothing.
func (c *Cluster) KillEtcd() { kill(&c.etcd) }

// Stop ends the cluster. The error says if a process did not end well.
func (c *Cluster) Stop() error {
	err := errors.Join(stop(&c.api), stop(&c.etcd))
	if c.temporary {
		err = errors.Join(err, os.RemoveAll(c.options.DataDir))
	}
	return err
}

// Compact drops etcd's history up to the present revision, which it returns.
// Older resource versions then expire: those of events at once, those of lists
// that the API server serves from memory within 15 seconds. A watch it serves
// from memory does not expire so; restart the API server for that.
func (c *Cluster) Compact(ctx context.Context) (revision int64, err error) {
	const attempts = 5 // of a few seconds each, which a busy machine may need
	for range attempts {
		if revision, err = c.compact(ctx); err == nil || ctx.Err() != nil {
			break
		}
	}
	return revision, err
}

func (c *Cluster) compact(ctx context.Context) (revision int64, err error) {
	var problem strings.Builder
	cmd := exec.CommandContext(ctx, c.binary, "compact", "--data-dir", c.options.DataDir)
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("compact etcd: %w: %s", errors.Join(err, ctx.Err()), problem.String())
	}
	if revision, err = strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64); err != nil {
		return 0, fmt.Errorf("compact etcd: read revision: %w", err)
	}
	return revision, nil
}

// requestLimit is how long the API server lets a request take that is no watch, on a machine that is busy with other
// tests.
const requestLimit = "30s"

func (c *Cluster) start(ctx context.Context, role string) (*process, error) {
	args := []string{"--data-dir", c.options.DataDir, "--role", role, "--request-timeout", requestLimit}
	if interval := c.options.CompactionInterval; interval != 0 {
		args = append(args, "--compaction-interval", max(interval, 0).String())
	}
	if role != "etcd" && c.apiServer != "" {
		args = append(args, "--apiserver", c.apiServer)
	}
	if role != "etcd" {
		args = append(append(args, "--"), c.options.APIServerFlags...)
	}
	return startProcess(ctx, filepath.Join(c.options.DataDir, role+".log"), c.binary, args...)
}

func kill(p **process) {
	if *p != nil {
		(*p).Kill()
		*p = nil
	}
}

func stop(p **process) error {
	if *p == nil {
		return nil
	}
	err := (*p).stop()
	*p = nil
	return err
}
