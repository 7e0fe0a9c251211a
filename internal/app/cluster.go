package app

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/decode"
	"github.com/kubecdc/kubecdc/internal/selection"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/source"
	"github.com/kubecdc/kubecdc/internal/usage"
)

// cluster is the API server and what is wanted of it.
type cluster struct {
	rest    *rest.Config
	version string // the exporter's
	name    string
	uid     string
	kinds   map[string]kind // of sinks; nil is all there are
	selection.Current
	instance string // of the state, unlike that of any other state; "" where there is none
	// met are the uids of all clusters that had the name, as the saved state knows them; nil is none but uid.
	met  atomic.Pointer[[]string]
	look time.Duration // between two times that the server is asked what it serves
}

// Access says how to reach the API server, and as whom.
type Access struct {
	Kubeconfig, Context string // "" is as kubectl finds it
	Version             string // of the exporter
}

// findCluster loads the kubeconfig.
func findCluster(to Access, cfg *config.Config) (*cluster, error) {
	restConfig, name, err := source.LoadKubeconfig(to.Kubeconfig, to.Context)
	if err != nil {
		return nil, usage.Wrap(err)
	}
	restConfig.UserAgent = "kubecdc-exporter/" + to.Version
	if cfg.Cluster != "" {
		name = cfg.Cluster
	}
	return &cluster{rest: restConfig, name: name, version: to.Version, look: time.Duration(cfg.Discovery.Interval)}, nil
}

// identify asks the server who it is, and waits until it can tell what it serves.
func (c *cluster) identify(ctx context.Context) (err error) {
	if c.uid, err = source.ClusterUID(ctx, c.rest); err != nil {
		return err
	}
	return source.AwaitReady(ctx, c.rest)
}

// judge tells records of other clusters in a log; named says that its destinations have the cluster's name in them. It
// is nil where nobody knows which cluster this is.
func (c *cluster) judge(named bool) sink.Judge {
	if c.uid == "" {
		return nil
	}
	return func(m *sink.Stored) error {
		owner := decode.Owner{Cluster: c.name, UIDs: []string{c.uid}, Named: named}
		if met := c.met.Load(); met != nil {
			owner.UIDs = append(owner.UIDs, *met...)
		}
		return owner.Judge(m)
	}
}

// recall reads from the state which clusters had the name.
func (c *cluster) recall(store *checkpoint.Store) error {
	met, err := store.Clusters()
	if err != nil {
		return fmt.Errorf("read the clusters that had the name %s: %w", c.name, err)
	}
	c.met.Store(&met)
	return nil
}

// embody gives the exporter the identity of its state, under which others see what it has sent.
func (c *cluster) embody(store *checkpoint.Store) error {
	key, err := store.RedactionKey()
	if err != nil {
		return fmt.Errorf("read the identity of the state: %w", err)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("instance"))
	c.instance = hex.EncodeToString(mac.Sum(nil)[:8])
	return nil
}

// meet returns what notes that another cluster has the name now.
func (c *cluster) meet(store *checkpoint.Store) func(uid string) error {
	return func(uid string) error { return errors.Join(store.MeetCluster(uid), c.recall(store)) }
}
