package cluster

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/kubecdc/kubecdc/internal/app/selection"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/format/decode"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/source"
)

// WantedBy says which streams the sink takes; nil is all.
func (c *Cluster) WantedBy(s *config.Sink) func(*change.Stream) bool {
	if len(s.Resources) == 0 {
		return nil
	}
	wants := selection.Following(&c.Current, func(chosen *selection.Selected) bool {
		return slices.ContainsFunc(chosen.Names, func(name string) bool { return slices.Contains(s.Resources, name) })
	})
	return func(stream *change.Stream) bool {
		if stream.IsActors() {
			return s.Actors
		}
		return wants(stream)
	}
}

// Named are the streams with all that they may be called.
func (c *Cluster) Named() []control.Stream {
	var named []control.Stream
	for _, s := range c.Streams() {
		r := s.Stream.Resource
		kind := strings.ToLower(r.Kind)
		alias := []string{kind}
		if r.Group != "" {
			alias = append(alias, kind+"."+r.Group, r.Name+"."+r.Version+"."+r.Group)
		}
		for _, name := range s.Names {
			alias = append(alias, strings.ToLower(name))
		}
		named = append(named, control.Stream{Name: s.Stream.String(), Alias: alias})
	}
	return named
}

// Taken are the present streams that the sink takes.
func (c *Cluster) Taken(s *config.Sink) []selection.Selected {
	wants := c.WantedBy(s)
	return c.StreamsThat(func(of *selection.Selected) bool { return wants == nil || wants(&of.Stream) })
}

// TakenBy are those of the streams that any of the named sinks takes.
func (c *Cluster) TakenBy(configured []config.Sink, sinks, streams []string) []string {
	var taken []string
	for i := range configured {
		if slices.Contains(sinks, configured[i].Name) {
			taken = append(taken, selection.NamesOf(c.Taken(&configured[i]))...)
		}
	}
	return slices.DeleteFunc(slices.Clone(streams), func(name string) bool { return !slices.Contains(taken, name) })
}

// Called are the streams that --resources names.
func (c *Cluster) Called(resources []string) ([]selection.Selected, error) {
	names, err := control.Resolve(c.Named(), resources)
	if err != nil {
		return nil, fmt.Errorf("--resources: %w", err)
	}
	return c.StreamsThat(func(s *selection.Selected) bool { return slices.Contains(names, s.Stream.String()) }), nil
}

// Reached are those of the streams that may have objects within the limits.
func (c *Cluster) Reached(names []string, l change.Limits) ([]string, error) {
	reached := selection.NamesOf(c.StreamsThat(func(s *selection.Selected) bool {
		return slices.Contains(names, s.Stream.String()) && l.Reach(&s.Stream)
	}))
	if len(reached) == 0 {
		return nil, &control.RefusedError{Text: fmt.Sprintf("%s: nothing of it is streamed of namespace %s", strings.Join(names, ", "), l.Namespace)}
	}
	return reached, nil
}

// StreamsThat are those of the present streams that are so.
func (c *Cluster) StreamsThat(are func(*selection.Selected) bool) []selection.Selected {
	return slices.DeleteFunc(slices.Clone(c.Streams()), func(s selection.Selected) bool { return !are(&s) })
}

// AskingNamespaces are the names of the streams whose filters may look at the object's namespace, or of all.
func (c *Cluster) AskingNamespaces(all bool) []string {
	return selection.NamesOf(c.StreamsThat(func(of *selection.Selected) bool { return all || of.AsksNamespace() }))
}

// Cluster is the API server and what is wanted of it.
type Cluster struct {
	Rest    *rest.Config
	Leases  *rest.Config // of the API server that has them
	Task    int          // of several; 0 is the only one
	Version string       // the exporter's
	Name    string
	UID     string // "" before Identify
	selection.Current
	Instance string // of the state, unlike that of any other state; "" where there is none
	// Holds says whether the state has something of the resource for the sink. It is set where there are several tasks.
	Holds func(sinkName, resource string) bool
	Look  time.Duration // between two times that the server is asked what it serves
	// met are the uids of all clusters that had the name, as the saved state knows them; nil is none but UID.
	met atomic.Pointer[[]string]
}

// Access says how to reach the API server, and as whom.
type Access struct {
	Kubeconfig, Context string  // "" is as kubectl finds it
	Secret              string  // with the kubeconfig, in Home or as kubectl finds that
	Version             string  // of the exporter
	Home                *Access // of the Leases: where the exporters of several clusters run; nil is the same one
}

// Of is how one of several clusters is reached.
func (to Access) Of(of config.ClusterOf) Access {
	to.Kubeconfig, to.Context, to.Secret = of.Kubeconfig, of.Context, of.Secret
	return to
}

// Read reads the kubeconfig that the cluster has of its own, nil where it has none.
func (to *Access) Read(ctx context.Context) (text []byte, err error) {
	switch {
	case to.Secret != "":
		home := cmp.Or(to.Home, new(Access))
		at, _, err := source.LoadKubeconfig(home.Kubeconfig, home.Context)
		if err != nil {
			return nil, usage.Wrap(err)
		}
		return source.ReadSecret(ctx, at, to.Secret)
	case to.Kubeconfig != "":
		return os.ReadFile(to.Kubeconfig)
	}
	return nil, nil
}

func (to *Access) load(ctx context.Context) (at *rest.Config, name string, err error) {
	if to.Secret == "" {
		at, name, err = source.LoadKubeconfig(to.Kubeconfig, to.Context)
	} else if text, readErr := to.Read(ctx); readErr != nil {
		return nil, "", readErr // which another try may mend
	} else {
		at, name, err = source.LoadSecret(to.Secret, text, to.Context)
	}
	if err != nil {
		return nil, "", usage.Wrap(err)
	}
	return at, name, nil
}

// Find loads the kubeconfig.
func Find(ctx context.Context, to Access, cfg *config.Config) (*Cluster, error) {
	restConfig, name, err := to.load(ctx)
	if err != nil {
		return nil, err
	}
	restConfig.UserAgent = "kubecdc-exporter/" + to.Version
	c := &Cluster{
		Rest: restConfig, Leases: restConfig, Name: cmp.Or(cfg.Cluster, name), Version: to.Version, Look: time.Duration(cfg.Discovery.Interval),
	}
	if cfg.Task.Count > 0 {
		c.Task = cfg.Task.Number
	}
	if to.Home != nil {
		if c.Leases, _, err = source.LoadKubeconfig(to.Home.Kubeconfig, to.Home.Context); err != nil {
			return nil, usage.Wrap(err)
		}
		c.Leases.UserAgent = restConfig.UserAgent
	}
	return c, nil
}

// Identify asks the server who it is, and waits until it can tell what it serves.
func (c *Cluster) Identify(ctx context.Context) (err error) {
	client, err := source.NewClient(c.Rest, 0)
	if err != nil {
		return err
	}
	if c.UID, err = client.ClusterUID(ctx); err != nil {
		return err
	}
	return client.AwaitReady(ctx)
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

// LoadMet reads from the state which clusters had the name.
func (c *Cluster) LoadMet(store *checkpoint.Store) error {
	met, err := store.Clusters()
	if err != nil {
		return fmt.Errorf("read the clusters that had the name %s: %w", c.Name, err)
	}
	c.Met(met)
	return nil
}

// Met are all clusters that had the name, by their uids.
func (c *Cluster) Met(uids []string) { c.met.Store(&uids) }

// AdoptIdentity gives the exporter the identity of its state, by which a log of the state is known to be of it.
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
	anew := false
	if found {
		if anew, err = checkpoint.CompareCluster(dir, saved, now); err != nil {
			return usage.Wrap(err)
		}
	}
	if _, err := store.Met(c.UID); err != nil { // before anything is told of it
		return err
	}
	if found && !anew {
		return nil
	}
	if anew {
		logger.Warn("cluster rebuilt under the same name; starting a new epoch", "cluster", c.Name, "uid", c.UID, "savedUid", saved.UID)
	}
	return store.SetCluster(now)
}

// NewLogger returns the process's logger, and sends client-go's own lines through it.
func NewLogger(out io.Writer, log config.Log) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(log.Level)); err != nil {
		level = slog.LevelInfo // the configuration has checked it
	}
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: short}
	var handler slog.Handler = slog.NewTextHandler(out, options)
	if log.Format == "json" {
		handler = slog.NewJSONHandler(out, options)
	}
	logger := slog.New(handler)
	klog.SetSlogLogger(logger)
	return logger
}

// short cuts what is too long for a line: the name of an object may be, in whatever it is told.
func short(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindString, slog.KindAny:
		if text := a.Value.String(); len(text) > change.MaxShown {
			a.Value = slog.StringValue(change.Shown(text, change.MaxShown))
		}
	}
	return a
}
