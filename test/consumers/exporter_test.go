package consumers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/dynamic"

	"github.com/kubecdc/kubecdc/test/child"
	"github.com/kubecdc/kubecdc/test/kafka"
	"github.com/kubecdc/kubecdc/test/testcluster"
)

// limit bounds each step of the test on a slow machine.
const limit = 3 * time.Minute

// stage is the cluster, the broker, and an exporter between them.
type stage struct {
	cluster *testcluster.Cluster
	kafka   *kafka.Cluster
	x       *exporter
	w       *writer
}

// newStage starts everything but the exporter at once, and what else there is: the first time, most of it is downloads
// and builds. Tests run in parallel, since each mostly waits.
func newStage(t *testing.T, also ...func() error) *stage {
	t.Helper()
	t.Parallel()
	s := &stage{x: &exporter{binary: built.Path(t), dir: t.ArtifactDir()}}
	t.Cleanup(func() {
		var err error
		if s.cluster != nil {
			err = s.cluster.Stop()
		}
		if s.kafka != nil {
			err = errors.Join(err, s.kafka.Close())
		}
		if err != nil {
			t.Error(err)
		}
	})
	var all errgroup.Group
	all.Go(func() (err error) { s.cluster, err = testcluster.Start(t.Context(), testcluster.Options{}); return err })
	all.Go(func() (err error) { s.kafka, err = kafka.New(t.Context(), kafka.Options{}); return err })
	for _, start := range also {
		all.Go(start)
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(s.cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	s.w = &writer{t: t, client: client}
	return s
}

// configure gives the exporter the text, in which its directory and then the broker stand first.
func (s *stage) configure(t *testing.T, text string, more ...any) {
	t.Helper()
	s.x.config = []string{"--kubeconfig", s.cluster.Kubeconfig(), "-f", filepath.Join(s.x.dir, "config.yaml")}
	of := append([]any{s.x.dir, s.kafka.Brokers()[0]}, more...)
	if err := os.WriteFile(s.x.config[3], fmt.Appendf(nil, text, of...), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (s *stage) brokers() string { return strings.Join(s.kafka.Brokers(), ",") }

// exporter is the product's binary, between the cluster and the brokers.
type exporter struct {
	binary, dir string
	config      []string // its arguments
	process     *child.Process
}

// start returns when the process runs.
func (x *exporter) start(t *testing.T) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(x.dir, "exporter.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(x.binary, append([]string{"run"}, x.config...)...)
	cmd.Stdout, cmd.Stderr = log, log
	if x.process, err = child.Start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.process.Kill)
}

// stop ends the process as an operator does.
func (x *exporter) stop(t *testing.T) {
	t.Helper()
	err := x.process.Terminate(limit)
	if err == nil {
		err = x.process.Err
	}
	if err != nil {
		t.Fatalf("the exporter ended: %v\n%s", err, x.log())
	}
}

// settle returns when every sink has acknowledged a full snapshot that was asked for now, and with it all that was
// before.
func (x *exporter) settle(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for {
		cmd := exec.CommandContext(ctx, x.binary, "snapshot", "--wait", "--state-dir", filepath.Join(x.dir, "state"))
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		err := cmd.Run()
		if err == nil {
			return
		}
		select { // it may not listen yet
		case <-x.process.Exited:
			t.Fatalf("the exporter ended: %v\n%s", x.process.Ended(), x.log())
		case <-ctx.Done():
			t.Fatalf("exporter snapshot: %v: %s\n%s", err, &said, x.log())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// reconciles returns when so many streams have been reconciled for the reason. A full snapshot alone would not do:
// where the server still has the state of an old position, it is a snapshot of that.
func (x *exporter) reconciles(t *testing.T, reason string, streams int) {
	t.Helper()
	// a line about one stream, and the part of a line about several
	compared := regexp.MustCompile("reason=" + reason + " .* replaced=|\\(" + reason + " [^)]* replaced,")
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for {
		text, err := os.ReadFile(filepath.Join(x.dir, "exporter.log"))
		if err != nil {
			t.Fatal(err)
		}
		done := len(compared.FindAll(text, -1))
		if done >= streams {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%d of %d streams are reconciled\n%s", done, streams, x.log())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (x *exporter) log() string {
	text, err := os.ReadFile(filepath.Join(x.dir, "exporter.log"))
	if err != nil {
		return err.Error()
	}
	return tail(string(text))
}
