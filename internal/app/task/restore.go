package task

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/saved"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/statelog"
	"github.com/kubecdc/kubecdc/internal/usage"
)

// LoggedState is what the log of the state holds.
type LoggedState struct {
	*control.State
	Log LogSummary `json:"log"`
}

// LogSummary is the log itself.
type LogSummary struct {
	Place    string    `json:"place"`
	Saved    time.Time `json:"saved"` // when the newest of its changes were saved
	Bytes    int       `json:"bytes"` // that are needed, compressed
	Messages int       `json:"messages"`
}

// ReadLog reads the log of the state that is configured, and changes nothing.
func ReadLog(ctx context.Context, to cluster.Access, cfg *config.Config) (state *LoggedState, err error) {
	found, err := findLogged(ctx, to, cfg)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "kubecdc-state-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := fill(ctx, dir, found, &letterFiles{dir: dir + "/deadletters"}, slog.New(slog.DiscardHandler)); err != nil {
		return nil, err
	}
	read, err := saved.ReadDir(ctx, dir)
	return &LoggedState{State: read, Log: LogSummary{found.Place(), found.Saved.UTC(), found.Bytes, found.Messages}}, err
}

// Restore fills an empty state directory from the log of the state. Whoever writes the log goes on.
func Restore(ctx context.Context, to cluster.Access, cfg *config.Config) (*LogSummary, error) {
	found, err := findLogged(ctx, to, cfg)
	if err != nil {
		return nil, err
	}
	if err := fill(ctx, cfg.State.Dir, found, lettersOf(cfg), slog.New(slog.DiscardHandler)); err != nil {
		return nil, saved.Explain(err)
	}
	return &LogSummary{found.Place(), found.Saved.UTC(), found.Bytes, found.Messages}, nil
}

// findLogged looks for the state in the log. The cluster is not asked for anything.
func findLogged(ctx context.Context, to cluster.Access, cfg *config.Config) (*statelog.Found, error) {
	cluster.NewLogger(io.Discard, cfg.Log)
	if cfg.State.Log == nil {
		return nil, usage.Errorf("state.log is missing: the configuration names no log of the state")
	}
	c := &cluster.Cluster{Name: cfg.Cluster}
	if c.Name == "" {
		var err error
		if c, err = cluster.Find(to, cfg); err != nil {
			return nil, err
		}
	}
	place, err := LogPlace(cfg, c, func(string, error) {})
	if err != nil {
		return nil, err
	}
	return statelog.Look(ctx, place, statelog.Bid{Of: statelog.Identity{Cluster: c.Name}})
}
