package cluster

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
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

// Cluster is the API server and what is wanted of it.
type Cluster struct {
	Rest    *rest.Config
	Version string // the exporter's
	Name    string
	UID     string // "" before Identify
	selection.Current
	Instance string        // of the state, unlike that of any other state; "" where there is none
	Look     time.Duration // between two times that the server is asked what it serves
	// met are the uids of all clusters that had the name, as the saved state knows them; nil is none but UID.
	met atomic.Pointer[[]string]
}

// Access says how to reach the API server, and as whom.
type Access struct {
	Kubeconfig, Context string // "" is as kubectl finds it
	Version             string // of the exporter
}

// Find loads the kubeconfig.
func Find(to Access, cfg *config.Config) (*Cluster, error) {
	restConfig, name, err := source.LoadKubeconfig(to.Kubeconfig, to.Context)
	if err != nil {
		return nil, usage.Wrap(err)
	}
	restConfig.UserAgent = "kubecdc-exporter/" + to.Version
	if cfg.Cluster != "" {
		name = cfg.Cluster
	}
	return &Cluster{Rest: restConfig, Name: name, Version: to.Version, Look: time.Duration(cfg.Discovery.Interval)}, nil
}

// Identify asks the server who it is, and waits until it can tell what it serves.
func (c *Cluster) Identify(ctx context.Context) (err error) {
	if c.UID, err = source.ClusterUID(ctx, c.Rest); err != nil {
		return err
	}
	return source.AwaitReady(ctx, c.Rest)
}

// Judge tells records of other clusters in a log; named says that its destinations have the cluster's name in them. It
// is nil where nobody knows which cluster this is.
func (c *Cluster) Judge(named bool) sink.Judge {
	if c.UID == "" {
		return nil
	}
	return func(m *sink.Stored) error {
		owner := decode.Owner{Cluster: c.Name, UIDs: []string{c.UID}, Named: named}
		if met := c.met.Load(); met != nil {
			owner.UIDs = append(owner.UIDs, *met...)
		}
		return owner.Judge(m)
	}
}

// Recall reads from the state which clusters had the name.
func (c *Cluster) Recall(store *checkpoint.Store) error {
	met, err := store.Clusters()
	if err != nil {
		return fmt.Errorf("read the clusters that had the name %s: %w", c.Name, err)
	}
	c.Met(met)
	return nil
}

// Met are all clusters that had the name, by their uids.
func (c *Cluster) Met(uids []string) { c.met.Store(&uids) }

// AdoptIdentity gives the exporter the identity of its state, under which others see what it has sent.
func (c *Cluster) AdoptIdentity(store *checkpoint.Store) error {
	key, err := store.RedactionKey()
	if err != nil {
		return fmt.Errorf("read the identity of the state: %w", err)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("instance"))
	c.Instance = hex.EncodeToString(mac.Sum(nil)[:8])
	return nil
}

// Claim ties the state to the cluster. A cluster that was made anew behind the same name is a new epoch: each stream
// finds that its position is of another one.
func (c *Cluster) Claim(store *checkpoint.Store, dir string, logger *slog.Logger) error {
	now := checkpoint.Cluster{Name: c.Name, UID: c.UID}
	saved, found, err := store.Cluster()
	if err != nil {
		return err
	}
	match := checkpoint.SameCluster
	if found {
		if match, err = checkpoint.CompareCluster(dir, saved, now); err != nil {
			return usage.Wrap(err)
		}
	}
	if _, err := store.Met(c.UID); err != nil { // before anything is told of it
		return err
	}
	switch {
	case !found:
		return store.SetCluster(now)
	case match == checkpoint.NewEpoch:
		logger.Warn("cluster rebuilt under the same name; starting a new epoch", "cluster", c.Name, "uid", c.UID, "savedUid", saved.UID)
		return store.SetCluster(now)
	}
	return nil
}
