package kafka

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/kubecdc/kubecdc/test/child"
)

// node is one broker, with its controller.
type node struct {
	id    int
	dir   string
	log   string
	ports map[Listener]int
	// fronts are the ports that are advertised in place of those that the broker listens on.
	fronts map[Listener]int

	mu      sync.Mutex
	process *child.Process // nil while killed or stopped
}

// createNodes settles the ports and the configuration of all brokers.
func (c *Cluster) createNodes() error {
	listeners := append([]Listener{Plaintext, controller}, c.options.Listeners...)
	behind := slices.DeleteFunc(slices.Clone(listeners), func(l Listener) bool { return l != Behind1 && l != Behind2 })
	ports, release, err := reservePorts(c.options.Nodes * (len(listeners) + len(behind)))
	if err != nil {
		return err
	}
	c.release = release
	for id := range c.options.Nodes {
		n := &node{id: id + 1, dir: filepath.Join(c.dir, "node-"+strconv.Itoa(id+1)), log: c.Log(id + 1)}
		n.ports, ports = assign(listeners, ports)
		n.fronts, ports = assign(behind, ports)
		c.nodes = append(c.nodes, n)
	}
	for _, n := range c.nodes {
		if err := os.MkdirAll(n.dir, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(n.properties(), c.properties(n), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// assign gives each listener one of the ports, and returns the rest.
func assign(listeners []Listener, ports []int) (assigned map[Listener]int, rest []int) {
	assigned = map[Listener]int{}
	for i, l := range listeners {
		assigned[l] = ports[i]
	}
	return assigned, ports[len(listeners):]
}

func (n *node) properties() string { return filepath.Join(n.dir, "server.properties") }

func (n *node) start(command []string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process != nil {
		return fmt.Errorf("start broker %d: it is running; kill or stop it first", n.id)
	}
	var err error
	n.process, err = startProcess(n.log, command)
	return err
}

// running returns the process, nil if there is none.
func (n *node) running() *child.Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process
}

func (n *node) take() *child.Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.process
	n.process = nil
	return p
}

func (n *node) kill() {
	if p := n.take(); p != nil {
		p.Kill()
	}
}

func (c *Cluster) node(id int) (*node, error) {
	i := slices.IndexFunc(c.nodes, func(n *node) bool { return n.id == id })
	if i < 0 {
		return nil, fmt.Errorf("there is no broker %d: the cluster has %v", id, c.NodeIDs())
	}
	return c.nodes[i], nil
}

// Kill ends a broker as kill -9 does. One that does not run stays so.
func (c *Cluster) Kill(id int) error {
	n, err := c.node(id)
	if err != nil {
		return err
	}
	n.kill()
	return nil
}

// StopNode ends a broker with a controlled shutdown: it hands its leaderships over first.
// A paused broker must be resumed before.
func (c *Cluster) StopNode(id int) error {
	n, err := c.node(id)
	if err != nil {
		return err
	}
	p := n.take()
	if p == nil {
		return nil
	}
	if err := p.Terminate(stopLimit); err != nil {
		return fmt.Errorf("stop broker: %w", err)
	}
	return nil
}

// Pause stops a broker's clock, as SIGSTOP does: its connections stay open and are silent.
func (c *Cluster) Pause(id int) error { return c.signal(id, syscall.SIGSTOP) }

// Resume ends Pause.
func (c *Cluster) Resume(id int) error { return c.signal(id, syscall.SIGCONT) }

func (c *Cluster) signal(id int, signal syscall.Signal) error {
	n, err := c.node(id)
	if err != nil {
		return err
	}
	p := n.running()
	if p == nil {
		return fmt.Errorf("signal broker %d: it does not run", id)
	}
	return p.Cmd.Process.Signal(signal)
}

// StartNodes starts brokers that were killed or stopped, all of those if no ids are
// given, on their data and at their old addresses. It returns when they take
// requests; for that, most of the cluster must run: where two of three are down,
// start both in one call.
func (c *Cluster) StartNodes(ctx context.Context, ids ...int) error {
	var nodes []*node
	for _, n := range c.nodes {
		if slices.Contains(ids, n.id) || (len(ids) == 0 && n.running() == nil) {
			nodes = append(nodes, n)
		}
	}
	for _, n := range nodes {
		if err := n.start(c.command(n)); err != nil {
			return err
		}
	}
	var group errgroup.Group
	for _, n := range nodes {
		group.Go(func() error { return n.awaitReady(ctx) })
	}
	return group.Wait()
}

// awaitReady waits until a broker knows itself to be one of the cluster and can
// give a producer its id, which needs the controller.
func (n *node) awaitReady(ctx context.Context) error {
	client, err := newClient(address(n.ports[Plaintext]))
	if err != nil {
		return err
	}
	defer client.Close()
	p := n.running()
	if p == nil {
		return fmt.Errorf("start broker %d: it was killed", n.id)
	}
	err = until(ctx, func(ctx context.Context) error {
		select {
		case <-p.Exited:
			return permanent{p.Ended()}
		default:
		}
		return n.answers(ctx, client)
	})
	if err != nil {
		return fmt.Errorf("start broker %d: %w; its log:\n%s", n.id, err, summary(n.log))
	}
	return nil
}
