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
	"testing/synctest"
	"time"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/selection"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/pipeline"
	"github.com/kubecdc/kubecdc/test/script"
)

// twoSinks is the Handler of a run of two streams, of which one sink takes one.
func twoSinks(requests chan pipeline.Request) *Handler {
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
		Cluster: c, Requests: requests,
	}
}

// answering is a pipeline that answers one request, and shows it, the zero one where there is none.
func answering(err error) (chan pipeline.Request, <-chan pipeline.Request) {
	requests, seen := make(chan pipeline.Request), make(chan pipeline.Request, 1)
	go func() {
		request, asked := <-requests
		if asked {
			request.Answer <- err
		}
		seen <- request
	}()
	return requests, seen
}

// TestSnapshotAsksForWhatIsMeant, and for what a server takes; all else is refused in words, and nobody is asked.
func TestSnapshotAsksForWhatIsMeant(t *testing.T) {
	script.Run(t, "testdata/snapshots.txt", func(text string) string {
		var asked control.SnapshotRequest
		must(t, json.Unmarshal([]byte(strings.ReplaceAll(text, "LONG", strings.Repeat("a", 5000))), &asked))
		requests, seen := answering(nil)
		got, err := twoSinks(requests).owe(t.Context(), asked, nil)
		close(requests)
		request := <-seen
		if err != nil {
			if !errors.As(err, new(*control.RefusedError)) || len(request.Streams) > 0 {
				t.Errorf("%s: %v, asked for %+v", text, err, request)
			}
			return err.Error()
		}
		if !slices.Equal(request.Streams, got.Streams) || request.Sink != asked.Sink || request.Limits != got.Limits {
			t.Errorf("%s asks for %+v, and is %+v", text, request, got)
		}
		return fmt.Sprint(got.Streams, got.Sinks, got.Limits)
	})
	requests, _ := answering(errTest)
	if _, err := twoSinks(requests).owe(t.Context(), control.SnapshotRequest{}, nil); !errors.Is(err, errTest) {
		t.Errorf("got %v, want the pipeline's error", err)
	}
}

// TestRequestDoesNotWaitForASinkThatDoesNotOpen: who asks is told so, and may ask again.
func TestRequestDoesNotWaitForASinkThatDoesNotOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask := twoSinks(make(chan pipeline.Request)).Functions(nil).Snapshot
		began := time.Now()
		if _, err := ask(t.Context(), control.SnapshotRequest{}); !errors.Is(err, control.ErrNotStreaming) || time.Since(began) != AskTime {
			t.Errorf("got %v after %s", err, time.Since(began))
		}
	})
}

// TestHangupIsAFullSnapshotForAll, each of them, until the stop.
func TestHangupIsAFullSnapshotForAll(t *testing.T) {
	requests, hangups := make(chan pipeline.Request), make(chan os.Signal)
	ctx, cancel := context.WithCancel(t.Context())
	stop := twoSinks(requests).AnswerHangups(ctx, hangups)
	for range 2 {
		hangups <- syscall.SIGHUP
		request := <-requests
		request.Answer <- nil
		if len(request.Streams) != 2 || request.Sink != "" {
			t.Errorf("asks for %+v", request)
		}
	}
	hangups <- syscall.SIGHUP // the pipeline takes no more
	cancel()
	stop()
}

var must = script.Must
