// Package kafka gives tests a real Apache Kafka 4.1: one broker or three, on
// loopback, that can be killed, paused, restarted on their data and secured; and
// two judges of what a topic holds, Java's own consumer and franz-go.
//
// Kafka comes from Maven Central on first use and is cached; see Available for
// what that needs. With KUBECDC_KAFKA it is another version; see test/matrix.
// Where a machine lacks it, Start gives kfake, an in-process server, instead;
// with CI=true or KUBECDC_REQUIRE_KAFKA=1 it fails.
//
//	c := kafka.Start(t, kafka.Options{Nodes: 3})
//	c.CreateTopic(t, "changes", kafka.Topic{Partitions: 6, Config: map[string]string{"min.insync.replicas": "2"}})
//	go write(c.Brokers(), "changes")
//	leader, err := c.LeaderOf(ctx, "changes", 0) // then c.Kill(leader), c.StartNodes(ctx, leader)
//	records := c.Consume(t, "changes", kafka.JudgeOptions{ReadCommitted: true})
//
// Methods that take a testing.TB end the test when they fail, so they are for its
// own goroutine. Those that return an error may be called by any goroutine at any
// time: faults, and where leaders are. In short:
//
//   - Start, Shared, RequireReal, Available, Required; New and Close without a test
//   - Cluster: Real, Brokers, BrokersAt, Ways, Certificates, NodeIDs, Log
//   - faults: Kill, Pause, Resume, StopNode, StartNodes, ElectUnclean
//   - leaders: LeaderOf, MoveLeader, AwaitISR
//   - topics: CreateTopic, DeleteTopic, AddPartitions, AlterTopicConfig, TopicConfig, DeleteRecords, CompactedQuickly,
//     AwaitCompaction
//   - security: Options.Listeners, Users, ACLs; AddACL, RemoveACL
//   - judges: Consume, ConsumeFast, Tail, AwaitTransactions
//
// PLAINTEXT is always there and may do everything, for judges and set-up.
package kafka

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// startLimit bounds a start within a test, with the first download on a small machine.
	startLimit = 10 * time.Minute

	// callLimit bounds one helper within a test, such as the creation of a topic.
	callLimit = 3 * time.Minute
)

// Options describe a cluster. The zero value is one broker on PLAINTEXT.
type Options struct {
	// Nodes is 1 or 3, broker and controller in one; 0 means 1. Topics have as many replicas.
	Nodes int

	// Listeners are those beside PLAINTEXT.
	Listeners []Listener

	// Users are names and passwords for PLAIN and SCRAM. OAUTHBEARER takes any name in a token without a signature.
	Users map[string]string

	// ACLs refuses what no AddACL allows, other than on PLAINTEXT and to SuperUsers.
	ACLs       bool
	SuperUsers []string

	// Config is further configuration of each broker, such as transaction.max.timeout.ms.
	Config map[string]string
}

// Cluster is a running Apache Kafka, or kfake in its place.
type Cluster struct {
	options Options
	install install
	dir     string // data, logs and certificates; ours to remove
	nodes   []*node
	release func() error // gives the ports back
	certs   Certificates
	client  *kgo.Client    // for set-up and for ConsumeFast
	admin   *kadm.Client   // the same
	fake    *kfake.Cluster // nil where Kafka is real
}

// Required reports whether tests must have the real Kafka: CI=true or KUBECDC_REQUIRE_KAFKA=1.
func Required() bool { return os.Getenv("CI") == "true" || os.Getenv("KUBECDC_REQUIRE_KAFKA") == "1" }

// RequireReal skips a test that only the real Kafka can pass where it cannot run, or fails it if it is Required.
func RequireReal(tb testing.TB) {
	tb.Helper()
	err := Available(tb.Context())
	switch {
	case err == nil:
	case Required():
		tb.Fatalf("%v; it is required (CI=true or KUBECDC_REQUIRE_KAFKA=1)", err)
	default:
		tb.Skipf("%v", err)
	}
}

// Start starts a cluster for one test, and ends it with the test. It returns when
// every broker takes requests.
func Start(tb testing.TB, options Options) *Cluster {
	tb.Helper()
	c, err := New(tb.Context(), options)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		c.showLogs(tb)
		if err := c.Close(); err != nil {
			tb.Error(err)
		}
	})
	c.showKind(tb)
	return c
}

// New is Start without a test. ctx limits the start, not the cluster's life, which Close ends.
func New(ctx context.Context, options Options) (*Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	options.Nodes = max(options.Nodes, 1)
	if options.Nodes != 1 && options.Nodes != 3 {
		return nil, fmt.Errorf("start Kafka: Nodes is %d; it must be 1 or 3", options.Nodes)
	}
	missing := Available(ctx)
	if missing != nil && Required() {
		return nil, fmt.Errorf("start Kafka: %w; it is required (CI=true or KUBECDC_REQUIRE_KAFKA=1)", missing)
	}
	c := &Cluster{options: options}
	begin := c.startReal
	if missing != nil {
		begin = c.startFake
	}
	if err := begin(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start Kafka: %w", err), c.Close())
	}
	return c, nil
}

func (c *Cluster) startReal(ctx context.Context) (err error) {
	if c.install, err = installed(ctx); err != nil {
		return err
	}
	if c.dir, err = os.MkdirTemp("", "kafka-"); err != nil {
		return err
	}
	if c.certs, err = createCertificates(filepath.Join(c.dir, "certs")); err != nil {
		return err
	}
	if err := c.createNodes(); err != nil {
		return err
	}
	if err := c.connect(); err != nil {
		return err
	}
	return c.StartNodes(ctx)
}

func (c *Cluster) startFake(context.Context) (err error) {
	if len(c.options.Listeners) > 0 || c.options.ACLs {
		return errors.New("listeners and ACLs need the real one; call RequireReal first")
	}
	if c.fake, err = kfake.NewCluster(kfake.NumBrokers(c.options.Nodes)); err != nil {
		return err
	}
	return c.connect()
}

func (c *Cluster) connect() (err error) {
	if c.client, err = newClient(c.Brokers()...); err == nil {
		c.admin = kadm.NewClient(c.client)
		c.admin.SetTimeoutMillis(int32(attemptLimit.Milliseconds()))
	}
	return err
}

// Real reports whether this is Apache Kafka. Otherwise it is kfake, which has no
// faults, no security and no second judge.
func (c *Cluster) Real() bool { return c.fake == nil }

// Brokers returns the addresses of the PLAINTEXT listeners. They stay the same over restarts.
func (c *Cluster) Brokers() []string { return c.BrokersAt(Plaintext) }

// Way is how a client reaches one broker by Behind1 or Behind2: it connects to Front, where the test has to listen, and
// what comes there is for Target.
type Way struct{ Front, Target string }

// Ways returns one way for each broker.
func (c *Cluster) Ways(listener Listener) []Way {
	var all []Way
	for _, n := range c.nodes {
		if front := n.fronts[listener]; front != 0 {
			all = append(all, Way{address(front), address(n.ports[listener])})
		}
	}
	return all
}

// BrokersAt is Brokers for another listener, nil if the cluster does not have it.
func (c *Cluster) BrokersAt(listener Listener) []string {
	if c.fake != nil && listener == Plaintext {
		return c.fake.ListenAddrs()
	}
	var all []string
	for _, n := range c.nodes {
		if port := n.ports[listener]; port != 0 {
			all = append(all, address(port))
		}
	}
	return all
}

// Certificates returns the files for TLS.
func (c *Cluster) Certificates() Certificates { return c.certs }

// NodeIDs returns the brokers' ids: 1, or 1 to 3.
func (c *Cluster) NodeIDs() []int {
	var ids []int
	for _, n := range c.nodes {
		ids = append(ids, n.id)
	}
	return ids
}

// Log returns the path of a broker's log.
func (c *Cluster) Log(id int) string { return filepath.Join(c.dir, "node-"+strconv.Itoa(id)+".log") }

func (c *Cluster) showKind(tb testing.TB) {
	tb.Helper()
	if !c.Real() {
		tb.Logf("kafka: %v: kfake stands in", Available(tb.Context()))
	}
}

// showLogs shows what the brokers said last in a test that has failed.
func (c *Cluster) showLogs(tb testing.TB) {
	tb.Helper()
	if !tb.Failed() {
		return
	}
	for _, n := range c.nodes {
		tb.Logf("log of broker %d:\n%s", n.id, summary(c.Log(n.id)))
	}
}

// Close ends all brokers as a crash would: nobody needs their data any more.
func (c *Cluster) Close() error {
	if c.client != nil {
		c.client.Close()
	}
	if c.fake != nil {
		c.fake.Close()
	}
	for _, n := range slices.Backward(c.nodes) {
		n.kill()
	}
	var err error
	if c.release != nil {
		err = c.release()
	}
	if c.dir != "" {
		err = errors.Join(err, os.RemoveAll(c.dir))
	}
	return err
}
