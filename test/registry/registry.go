package registry

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/kubecdc/kubecdc/test/child"
	"github.com/kubecdc/kubecdc/test/maven"
)

// Registry is one that runs, or that was stopped.
type Registry struct {
	install maven.Dir
	port    int
	log     string
	process *child.Process
}

// startLimit is how long a start may take on a busy machine; usually it is 10 s.
const startLimit = 2 * time.Minute

// Start starts a registry without any subject. Its log goes to the directory.
func Start(ctx context.Context, dir string) (*Registry, error) {
	install, err := project().Install(ctx)
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	r := &Registry{install: install, port: port, log: filepath.Join(dir, "registry.log")}
	return r, r.Restart(ctx)
}

// freePort is one below those that operating systems give to outgoing connections, so that it is free again after a
// stop.
func freePort() (int, error) {
	for range 100 {
		port := 9000 + rand.IntN(1000)
		if l, err := net.Listen("tcp", address(port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, errors.New("start the registry: no port is free")
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// URL is that of the API of Confluent's registry.
func (r *Registry) URL() string { return "http://" + address(r.port) + "/apis/ccompat/v7" }

// Restart starts a registry at the same address that knows nothing.
func (r *Registry) Restart(ctx context.Context) error {
	jars, err := filepath.Glob(filepath.Join(string(r.install), "program", "*-runner.jar"))
	if err != nil || len(jars) != 1 {
		return fmt.Errorf("start the registry: there are %d programs, %w", len(jars), err)
	}
	out, err := os.OpenFile(r.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("start the registry: %w", err)
	}
	defer out.Close()
	cmd := exec.Command("java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-jar", jars[0])
	cmd.Env = append(os.Environ(), "QUARKUS_HTTP_HOST=127.0.0.1", "QUARKUS_HTTP_PORT="+strconv.Itoa(r.port))
	cmd.Stdout, cmd.Stderr = out, out
	if r.process, err = child.Start(cmd); err != nil {
		return fmt.Errorf("start the registry: %w", err)
	}
	return r.awaitReady(ctx)
}

func (r *Registry) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL()+"/subjects", nil)
		if err != nil {
			return err
		}
		if response, err := http.DefaultClient.Do(request); err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-r.process.Exited:
			return fmt.Errorf("start the registry: it ended, see %s", r.log)
		case <-ctx.Done():
			r.Stop()
			return fmt.Errorf("start the registry: it is not ready: %w, see %s", ctx.Err(), r.log)
		}
	}
}

// Stop ends the registry, which forgets everything.
func (r *Registry) Stop() {
	if r.process != nil {
		r.process.Kill()
	}
}
