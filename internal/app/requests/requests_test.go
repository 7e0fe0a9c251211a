package requests

import (
	"context"
	"errors"
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

// answering is a pipeline that answers one request, and shows it.
func answering(err error) (chan pipeline.Request, <-chan pipeline.Request) {
	requests, seen := make(chan pipeline.Request), make(chan pipeline.Request, 1)
	go func() {
		request := <-requests
		request.Answer <- err
		seen <- request
	}()
	return requests, seen
}

func TestSnapshotAsksForWhatIsMeant(t *testing.T) {
	for _, c := range []struct {
		resources, sink string
		streams, sinks  string
	}{
		{"", "", "pods shop/deployments.apps", "all some"},
		{"po", "", "pods", "all some"},
		{"Pod,deployment", "all", "pods shop/deployments.apps", "all"},
		{"pods,deployments.apps", "some", "pods", "some"},
		{"deployments.v1.apps", "", "shop/deployments.apps", "all some"},
	} {
		requests, seen := answering(nil)
		asked := control.SnapshotRequest{Resources: splitNames(c.resources), Sink: c.sink}
		got, err := twoSinks(requests).owe(t.Context(), asked, nil)
		if err != nil || strings.Join(got.Streams, " ") != c.streams || strings.Join(got.Sinks, " ") != c.sinks {
			t.Errorf("%+v gives %+v, %v", asked, got, err)
			continue
		}
		if request := <-seen; !slices.Equal(request.Streams, got.Streams) || request.Sink != c.sink {
			t.Errorf("%+v asks for %+v", asked, request)
		}
	}
}

func splitNames(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}

func TestSnapshotOfNothingIsRefused(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel() // nothing waits for a pipeline that must not be asked
	for want, asked := range map[string]control.SnapshotRequest{
		`no stream of "nodes"; there are: pods, shop/deployments.apps`: {Resources: []string{"nodes"}},
		`no sink "none"; there are: all, some`:                         {Sink: "none"},
		`shop/deployments.apps: none of these sinks takes it: some`:    {Resources: []string{"deployments"}, Sink: "some"},
	} {
		_, err := twoSinks(nil).owe(ended, asked, nil)
		var refused *control.RefusedError
		if !errors.As(err, &refused) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	requests, _ := answering(errTest)
	if _, err := twoSinks(requests).owe(t.Context(), control.SnapshotRequest{}, nil); !errors.Is(err, errTest) {
		t.Errorf("got %v, want the pipeline's error", err)
	}
}

// TestASnapshotOfAPartAsksForWhatAServerTakes, and what no server takes is refused in words.
func TestASnapshotOfAPartAsksForWhatAServerTakes(t *testing.T) {
	requests, seen := answering(nil)
	asked := control.SnapshotRequest{Namespace: "shop", Name: "system:node", Selector: "tier in (b,a),app==web"}
	got, err := twoSinks(requests).owe(t.Context(), asked, nil)
	want := change.Limits{Namespace: "shop", Name: "system:node", Selector: "app==web,tier in (a,b)"}
	if err != nil || got.Limits != want || (<-seen).Limits != want {
		t.Errorf("asked for %+v, %v; want %+v", got, err, want)
	}
	requests, _ = answering(nil)
	if got, err := twoSinks(requests).owe(t.Context(), control.SnapshotRequest{Namespace: "mall"}, nil); err != nil || strings.Join(got.Streams, " ") != "pods" {
		t.Errorf("of another namespace it is %+v, %v", got, err)
	}
	long := strings.Repeat("a", 64)
	for _, c := range []struct {
		asked control.SnapshotRequest
		want  string
	}{
		{control.SnapshotRequest{Namespace: "Shop"}, `namespace "Shop" cannot be one: want lower case letters, digits and -, 63 at most`},
		{control.SnapshotRequest{Namespace: "../etc"}, `namespace "../etc" cannot be one: want lower case letters, digits and -, 63 at most`},
		{control.SnapshotRequest{Namespace: long}, `namespace "` + long + `" cannot be one: want lower case letters, digits and -, 63 at most`},
		{control.SnapshotRequest{Name: "a/b"}, `name "a/b" cannot be an object's: give a name as kubectl shows it`},
		{control.SnapshotRequest{Name: ".."}, `name ".." cannot be an object's: give a name as kubectl shows it`},
		{control.SnapshotRequest{Name: strings.Repeat(long, 4)}, `name "` + long[:40] + `" cannot be an object's: give a name as kubectl shows it`},
		{control.SnapshotRequest{Selector: "a in ("}, `selector "a in (": unable to parse requirement: found '', expected: ',', ')' or identifier: write it as kubectl does, such as app=web`},
		{control.SnapshotRequest{Selector: strings.Repeat("a", 5000)}, `selector of 5000 bytes: want 4096 at most`},
		{control.SnapshotRequest{Resources: []string{"deployments"}, Namespace: "mall"}, `shop/deployments.apps: nothing of it is streamed of namespace mall`},
	} {
		_, err := twoSinks(nil).owe(t.Context(), c.asked, nil)
		var refused *control.RefusedError
		if !errors.As(err, &refused) || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
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

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
