package nats

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/test/natsserver"
	"github.com/kubecdc/kubecdc/test/sinktest"
)

// startCluster does not wait until the servers found each other: that is for the sink to bear.
func startCluster(t *testing.T) (servers []*testServer) {
	for _, s := range natsserver.StartCluster(t) {
		servers = append(servers, &testServer{t, s})
	}
	return servers
}

// TestClusterConformance moves the leader with every cut, on one cluster for all cases.
func TestClusterConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("elections take seconds")
	}
	servers := startCluster(t)
	var networks []*proxy
	var urls []string
	for _, s := range servers {
		network := startProxy(t, s.Addr().String())
		networks, urls = append(networks, network), append(urls, network.url())
	}
	admin, _ := servers[0].admin()
	options := Options{URL: strings.Join(urls, ","), Stream: testStream, Subjects: []string{"k8s.>"}, Replicas: 3}
	first := newSink(t, options)
	openAt(t, first, "") // the servers found each other
	noError(t, first.Close(t.Context()))
	sinktest.Run(t, sinktest.Harness{New: func(t *testing.T) *sinktest.Env {
		deleteStream(t, admin)
		return clusterEnv(options, networks, admin)
	}})
}

func clusterEnv(options Options, networks []*proxy, admin jetstream.JetStream) *sinktest.Env {
	return &sinktest.Env{
		Sink:        func(*testing.T) sink.Sink { return must(New(options)) },
		Messages:    func(t *testing.T) []sinktest.Stored { return storedIn(t, admin) },
		Destination: destination,
		TooLarge:    1<<20 + 1,
		MaxValue:    1<<20 - 4<<10,
		Recreate:    func(t *testing.T) { deleteStream(t, admin) },
		Leaks:       []goleak.Option{goleak.IgnoreAnyFunction("github.com/nats-io/nats-server/v2/server.(*Server).startGoRoutine.func1")},
		Cut: func() {
			_ = admin.Conn().Publish("$JS.API.STREAM.LEADER.STEPDOWN."+testStream, nil)
			for _, network := range networks {
				network.cut()
			}
		},
		Stall: func(*testing.T) func() {
			for _, network := range networks {
				network.stall()
			}
			return func() {
				for _, network := range networks {
					network.set(false)
				}
			}
		},
	}
}

func deleteStream(t *testing.T, admin jetstream.JetStream) {
	t.Helper()
	insist(t, func(ctx context.Context) error {
		err := admin.DeleteStream(ctx, testStream)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return nil
		}
		return err
	})
}

// insist asks until it is answered. During an election nobody answers, and a server that just lost it swallows the
// question, so that each attempt has a deadline of its own.
func insist(t *testing.T, ask func(context.Context) error) {
	t.Helper()
	for all := within(t); ; sink.Pause(all, 50*time.Millisecond, nil) {
		ctx, cancel := context.WithTimeout(all, 10*time.Second)
		err := ask(ctx)
		cancel()
		if err == nil {
			return
		}
		if all.Err() != nil {
			t.Fatal(err)
		}
	}
}

// storedIn reads the stream's leader, which may just be elected.
func storedIn(t *testing.T, admin jetstream.JetStream) []sinktest.Stored {
	t.Helper()
	var all []sinktest.Stored
	insist(t, func(ctx context.Context) (err error) {
		all, err = readStream(ctx, admin)
		return err
	})
	return all
}

func readStream(ctx context.Context, admin jetstream.JetStream) ([]sinktest.Stored, error) {
	stream, err := admin.Stream(ctx, testStream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	state := stream.CachedInfo().State
	var all []sinktest.Stored
	for seq := max(state.FirstSeq, 1); seq <= state.LastSeq; seq++ {
		m, err := stream.GetMsg(ctx, seq)
		if err != nil {
			return nil, err
		}
		all = append(all, storedMessage(m))
	}
	return all, nil
}

// TestI3ClusterChangesItsLeader: a new leader finds messages of the old one in its log that nobody acknowledged.
func TestI3ClusterChangesItsLeader(t *testing.T) {
	if testing.Short() {
		t.Skip("elections take seconds")
	}
	servers := startCluster(t)
	var urls []string
	for _, s := range servers {
		urls = append(urls, s.URL())
	}
	retries := map[string]int{}
	publisher := newSink(t, Options{
		URL: strings.Join(urls, ","), Stream: testStream, Subjects: []string{"k8s.>"}, Replicas: 3,
		Retry: func(reason string, _ error) { retries[reason]++ },
	})
	publisher.tuning.Reply = time.Second
	openAt(t, publisher, "")
	admin, _ := servers[0].admin()
	nc := admin.Conn()
	maker := newMaker()
	var want []string
	for i := range 60 {
		batch := maker.Batch(100)
		want = append(want, idsOf(batch)...)
		if i%6 == 3 { // while the batch is under way
			noError(t, nc.Publish("$JS.API.STREAM.LEADER.STEPDOWN."+testStream, nil))
		}
		if i == 40 {
			leader(t, servers, admin).Stop()
		}
		write(t, publisher, batch)
	}
	t.Logf("retries: %v", retries)
	var got []string
	for _, stored := range storedIn(t, admin) {
		got = append(got, stored.ID)
	}
	wantIDs(t, got, want)
}

// leader is a server that is not the first one, to which the admin is connected.
func leader(t *testing.T, servers []*testServer, admin jetstream.JetStream) *testServer {
	t.Helper()
	var stream jetstream.Stream
	insist(t, func(ctx context.Context) (err error) {
		stream, err = admin.Stream(ctx, testStream)
		return err
	})
	for _, s := range servers[1:] {
		if s.Options.ServerName == stream.CachedInfo().Cluster.Leader {
			return s
		}
	}
	return servers[1]
}

// TestCheckOfServersThatHaveJustStarted and have no leader yet for JetStream.
func TestCheckOfServersThatHaveJustStarted(t *testing.T) {
	servers := startCluster(t)
	options := servers[0].options()
	options.Replicas = 3
	wantNote(t, options, smallNote)
}
