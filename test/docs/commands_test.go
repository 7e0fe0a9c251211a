package docs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/test/natsserver"
)

// TestEveryCommandRuns runs the commands of each page in the page's order, in a world of the page's own.
func TestEveryCommandRuns(t *testing.T) {
	texts := pages(t)
	for _, page := range slices.Sorted(maps.Keys(texts)) {
		var run []block
		for _, b := range blocks(t, page, texts[page]) {
			if b.is("sh", "console", "bash", "shell") || b.notes["file"] != "" {
				run = append(run, b)
			}
		}
		if !slices.ContainsFunc(run, func(b block) bool { return b.notes["not run"] == "" }) {
			continue
		}
		t.Run(page, func(t *testing.T) {
			w := newWorld(t)
			for _, b := range run {
				t.Run(fmt.Sprintf("line %d", b.line), func(t *testing.T) {
					defer func(t *testing.T) { w.t = t }(w.t)
					w.t = t
					w.play(&b)
				})
			}
		})
	}
}

// play does what the block says.
func (w *world) play(b *block) {
	w.t.Helper()
	if name := b.notes["file"]; name != "" {
		w.write(name, strings.ReplaceAll(b.text, auditAddress, w.audited)+"\n")
		return
	}
	if reason := b.notes["not run"]; reason != "" {
		w.t.Skip("not run:", reason)
	}
	if tool := b.notes["needs"]; tool != "" {
		if _, err := exec.LookPath(tool); err != nil {
			w.t.Skipf("%s is not here, which the page says is needed", tool)
		}
	}
	if event := b.notes["before"]; event != "" {
		happen := w.events()[event]
		if happen == nil {
			w.t.Fatalf("nobody knows what it is that %q", event)
		}
		happen()
	}
	commands := b.commands()
	for i, c := range commands {
		if b.notes["until"] != "" && i == len(commands)-1 {
			w.runUntil(c, b.notes["until"])
		} else {
			w.run(c, b.notes["exits"])
		}
	}
}

// prepare is the command in the world: a shell in its directory, with the exporter in its path, and addresses that are
// there instead of those that the page has for a reader's own.
func (w *world) prepare(ctx context.Context, c command) *exec.Cmd {
	w.t.Helper()
	text := c.text
	url := w.nats.URL()
	if strings.Contains(text, "exporter run ") { // a second exporter, with everything of its own
		url = natsserver.Start(w.t).URL()
		text += " --listen 127.0.0.1:0"
	}
	text = strings.NewReplacer("nats://nats:4222", url, "http://127.0.0.1:8080", w.address(), "kafka:9092", w.kafka, "/var/lib/kubecdc", w.t.TempDir()).Replace(text)
	cmd := exec.CommandContext(ctx, "bash", "-e", "-o", "pipefail", "-c", text)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), "PATH="+w.tools()+":"+filepath.Dir(exporter.Path(w.t))+":"+os.Getenv("PATH"), natsVariable+"="+url, "KUBECONFIG="+w.kubeconfig, "NO_COLOR=1")
	if strings.HasPrefix(text, "make ") { // of the project
		cmd.Dir = root
		cmd.Env = append(cmd.Env, "KUBECONFIG=") // so make run starts an API server
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = limit
	return cmd
}

// run runs a command to its end, which has to be with the exit code and the columns that the page says.
func (w *world) run(c command, code string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), limit)
	defer cancel()
	cmd := w.prepare(ctx, c)
	output, err := cmd.CombinedOutput()
	if want, _ := strconv.Atoi(code); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != want {
		w.t.Fatalf("%s: exit code is not %d: %v\n%s", c.text, want, err, output)
	}
	w.t.Logf("$ %s\n%s", c.text, output)
	var lines []string
	for line := range strings.SplitSeq(string(output), "\n") {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	for _, heading := range c.headings() {
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, heading) }) {
			w.t.Errorf("%s: the page shows columns %s, and it printed\n%s", c.text, heading, output)
		}
	}
}

// runUntil runs a command that does not end by itself until it says something.
func (w *world) runUntil(c command, text string) {
	w.t.Helper()
	if strings.HasPrefix(c.text, "make run") {
		w.needPorts("127.0.0.1:4222", "127.0.0.1:8080")
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	cmd := w.prepare(ctx, c)
	said := &hearer{text: text, heard: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-said.heard:
		cancel()
		if err := <-ended; err != nil && !isInterrupt(err) {
			w.t.Errorf("%s: it was interrupted, and ended with %v\n%s", c.text, err, said)
		}
	case err := <-ended:
		w.t.Fatalf("%s: it ended by itself, with %v, and did not say %q:\n%s", c.text, err, text, said)
	case <-time.After(2 * limit):
		cancel()
		<-ended
		w.t.Fatalf("%s: it did not say %q:\n%s", c.text, text, said)
	}
	w.t.Logf("$ %s\n%s", c.text, said)
}

// isInterrupt says of an error that the shell or make gives it for having been interrupted.
func isInterrupt(err error) bool {
	var exit *exec.ExitError
	return errors.Is(err, context.Canceled) || errors.As(err, &exit) && (!exit.Exited() || exit.ExitCode() == 130 || exit.ExitCode() == 2)
}

// needPorts skips the test where somebody else has one of the ports that the command has for itself.
func (w *world) needPorts(addresses ...string) {
	w.t.Helper()
	for _, address := range addresses {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			w.t.Skipf("the command needs port %s: %v", address, err)
		}
		listener.Close()
	}
}

// hearer keeps what is written, and says when a text was in it.
type hearer struct {
	text  string
	heard chan struct{}

	mu   sync.Mutex
	once sync.Once
	all  bytes.Buffer
}

var _ io.Writer = (*hearer)(nil)

func (h *hearer) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all.Write(b)
	if strings.Contains(h.all.String(), h.text) {
		h.once.Do(func() { close(h.heard) })
	}
	return len(b), nil
}

func (h *hearer) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all.String()
}
