// Command demo shows the exporter at work: it starts a development API server, unless KUBECONFIG names a cluster, runs
// "exporter dev" against it, makes a few real changes, and shows them as they come back out of JetStream.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/kubecdc/kubecdc/test/testcluster"
)

func main() {
	exporter := flag.String("exporter", "bin/exporter", "the exporter to run")
	once := flag.Bool("once", false, "end when the changes have come back")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *exporter, *once); err != nil {
		fmt.Fprintf(os.Stderr, "demo: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, exporter string, once bool) (err error) {
	kubeconfig := os.Getenv("KUBECONFIG")
	ours := kubeconfig == ""
	if ours {
		fmt.Println("starting a development API server (the first time it is built, which takes some minutes) ...")
		cluster, err := testcluster.Start(ctx, testcluster.Options{Building: showBuilding()})
		if err != nil {
			return err
		}
		defer func() {
			if err := cluster.Stop(); err != nil {
				fmt.Fprintf(os.Stderr, "demo: stop the API server: %v\n", err)
			}
		}()
		kubeconfig = cluster.Kubeconfig()
	}
	show, err := startExporter(ctx, exporter, kubeconfig)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, show.stop()) }()
	began := [][]string{{"snapshot.end"}}
	if ours {
		began = snapshots()
	}
	if err := show.waitForEach(ctx, began); err != nil {
		return err
	}
	if ours {
		if err := makeChanges(ctx, kubeconfig, show.waitFor); err != nil {
			return err
		}
	}
	if once {
		return nil
	}
	fmt.Printf("\nEvery change of the cluster is shown until Ctrl-C. The cluster is open to you, too:\n  export KUBECONFIG=%s\n\n", kubeconfig)
	select {
	case <-show.ended:
	case <-ctx.Done():
	}
	return nil
}

// showBuilding shows that the build goes on.
func showBuilding() func(packages int) {
	began := time.Now()
	return func(packages int) {
		fmt.Printf("  building: %d packages compiled in %s\n", packages, time.Since(began).Round(time.Second))
	}
}

// shown is a running "exporter dev".
type shown struct {
	process *exec.Cmd
	lines   chan string   // what it printed, for those who wait
	ended   chan struct{} // closed when its output has ended
}

func startExporter(ctx context.Context, exporter, kubeconfig string) (*shown, error) {
	process := exec.CommandContext(ctx, exporter, "dev", "--kubeconfig", kubeconfig, "--log-level", "warn")
	process.Cancel = func() error { return process.Process.Signal(os.Interrupt) }
	process.WaitDelay = 30 * time.Second
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for us; we pass it on
	process.Stderr = os.Stderr
	output, err := process.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("read the exporter's output: %w", err)
	}
	if err := process.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w: build it with make build", exporter, err)
	}
	s := &shown{process: process, lines: make(chan string, 10_000), ended: make(chan struct{})}
	go s.print(output)
	return s, nil
}

// print shows the exporter's lines and remembers them for waitFor. It ends with the exporter.
func (s *shown) print(output io.Reader) {
	defer close(s.ended)
	scanner := bufio.NewScanner(output)
	for scanner.Scan() {
		fmt.Println(scanner.Text())
		select {
		case s.lines <- scanner.Text():
		default: // nobody waits any more
		}
	}
}

// waitFor returns when a line has come that holds all the words.
func (s *shown) waitFor(ctx context.Context, words ...string) error {
	return s.waitForEach(ctx, [][]string{words})
}

// waitForEach returns when, in any order, a line has come for each that holds all of its words.
func (s *shown) waitForEach(ctx context.Context, each [][]string) error {
	timeout := time.After(60 * time.Second)
	for {
		select {
		case line := <-s.lines:
			each = slices.DeleteFunc(each, func(words []string) bool {
				return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(line, word) })
			})
			if len(each) == 0 {
				return nil
			}
		case <-timeout:
			return fmt.Errorf("wait for a line with %q: none came within a minute", each[0])
		case <-s.ended:
			return fmt.Errorf("wait for a line with %q: the exporter ended", each[0])
		case <-ctx.Done():
			return nil
		}
	}
}

// stop asks the exporter to stop and returns its failure, if it had one.
func (s *shown) stop() error {
	s.process.Process.Signal(os.Interrupt) // it may have ended already
	<-s.ended
	var exit *exec.ExitError
	if err := s.process.Wait(); errors.As(err, &exit) {
		return fmt.Errorf("exporter: %w", err)
	}
	return nil
}
