package registry

import (
	"context"
	"fmt"
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
	port, err := child.FreePort()
	if err != nil {
		return nil, err
	}
	r := &Registry{install: install, port: port, log: filepath.Join(dir, "registry.log")}
	return r, r.Restart(ctx)
}

// URL is that of the API of Confluent's registry.
func (r *Registry) URL() string { return "http://" + child.Address(r.port) + "/apis/ccompat/v7" }

// Restart starts a registry at the same address that knows nothing.
func (r *Registry) Restart(ctx context.Context) error {
	jars, err := filepath.Glob(filepath.Join(string(r.install), "program", "*-runner.jar"))
	if err != nil || len(jars) != 1 {
		return fmt.Errorf("start the registry: there are %d programs, %w", len(jars), err)
	}
	cmd := exec.Command("java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-jar", jars[0])
	cmd.Env = append(os.Environ(), "QUARKUS_HTTP_HOST=127.0.0.1", "QUARKUS_HTTP_PORT="+strconv.Itoa(r.port))
	if r.process, err = child.StartLogged(cmd, r.log); err != nil {
		return fmt.Errorf("start the registry: %w", err)
	}
	return r.awaitReady(ctx)
}

func (r *Registry) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	err := r.process.Await(ctx, func() bool {
		response, err := http.Get(r.URL() + "/subjects")
		return err == nil && response.Body.Close() == nil && response.StatusCode == http.StatusOK
	})
	if err != nil {
		r.Stop()
		return fmt.Errorf("start the registry: it is not ready: %w, see %s", err, r.log)
	}
	return nil
}

// Stop ends the registry, which forgets everything.
func (r *Registry) Stop() {
	if r.process != nil {
		r.process.Kill()
	}
}
