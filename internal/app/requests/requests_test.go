package requests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/selection"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/pipeline"
	"github.com/kubecdc/kubecdc/test/script"
)

// twoSinks is the Handler of a run of two streams, of which one sink takes one.
func twoSinks(request func(context.Context, pipeline.Request) error) *Handler {
	pods := change.Resource{Version: "v1", Name: "pods", Kind: "Pod"}
	deployments := change.Resource{Group: "apps", Version: "v1", Name: "deployments", Kind: "Deployment"}
	c := new(cluster.Cluster)
	c.Chosen.Store(&selection.Choice{Streams: []selection.Selected{
		{Stream: change.Stream{Resource: pods}, Names: []string{"po"}},
		{Stream: change.Stream{Resource: deployments, Namespace: "shop"}, Names: []string{"deployments"}},
	}})
	return &Handler{
		Config:  &config.Config{Sinks: []config.Sink{{Name: "all"}, {Name: "some", Resources: []string{"po"}}}},
		Logger:  slog.New(slog.DiscardHandler),
		Cluster: c, Request: request,
	}
}

// TestSnapshotAsksForWhatIsMeant, and for what a server takes; all else is refused in words, and nobody is asked.
func TestSnapshotAsksForWhatIsMeant(t *testing.T) {
	script.Run(t, "testdata/snapshots.txt", func(text string) string {
		var asked control.SnapshotRequest
		must(t, json.Unmarshal([]byte(strings.ReplaceAll(text, "LONG", strings.Repeat("a", 5000))), &asked))
		request := pipeline.Request{Parts: []pipeline.Part{{}}} // that the pipeline has seen
		got, err := twoSinks(func(_ context.Context, r pipeline.Request) error { request = r; return nil }).owe(t.Context(), asked, nil)
		part := request.Parts[0]
		if err != nil {
			if !errors.As(err, new(*control.RefusedError)) || len(part.Streams) > 0 {
				t.Errorf("%s: %v, asked for %+v", text, err, request)
			}
			return err.Error()
		}
		if !slices.Equal(part.Streams, got.Streams) || request.Sink != asked.Sink || part.Limits != got.Limits {
			t.Errorf("%s asks for %+v, and is %+v", text, request, got)
		}
		return fmt.Sprint(got.Streams, got.Sinks, got.Limits)
	})
	fails := func(context.Context, pipeline.Request) error { return errTest }
	if _, err := twoSinks(fails).owe(t.Context(), control.SnapshotRequest{}, nil); !errors.Is(err, errTest) {
		t.Errorf("got %v, want the pipeline's error", err)
	}
}

// TestHangupIsAFullSnapshotForAll, each of them, until the stop.
func TestHangupIsAFullSnapshotForAll(t *testing.T) {
	requests, hangups := make(chan pipeline.Request), make(chan os.Signal)
	request := func(ctx context.Context, r pipeline.Request) error {
		select {
		case requests <- r:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	stop := twoSinks(request).AnswerHangups(ctx, hangups)
	for range 2 {
		hangups <- syscall.SIGHUP
		if asked := <-requests; len(asked.Parts[0].Streams) != 2 || asked.Sink != "" {
			t.Errorf("asks for %+v", asked)
		}
	}
	hangups <- syscall.SIGHUP // the pipeline takes no more
	cancel()
	stop()
}

var must = script.Must
