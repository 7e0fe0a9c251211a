package badinput

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/kubecdc/kubecdc/test/program"
	"github.com/kubecdc/kubecdc/test/testcluster"
)

// password is part of many command lines and configurations here, and of no output.
const password = "Pa55-never-shown"

// desk is a directory in which a person runs the exporter: a kubeconfig is in it, and nothing else of the machine is
// seen. Paths are relative to it, so that messages are the same everywhere.
type desk struct {
	t       *testing.T
	dir     string
	server  string // of the kubeconfig
	secrets []string
}

// newDesk is a desk with a real cluster.
func newDesk(t *testing.T) *desk {
	t.Helper()
	cluster := shared.Get(t)
	d := emptyDesk(t)
	d.server = cluster.RESTConfig().Host
	d.secrets = append(d.secrets, cluster.Token(testcluster.Admin), cluster.Token(testcluster.Limited))
	content, err := os.ReadFile(cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	d.write("kubeconfig", string(content))
	return d
}

// emptyDesk is one without a kubeconfig. Other users can read it.
func emptyDesk(t *testing.T) *desk {
	t.Helper()
	dir, err := os.MkdirTemp("", "badinput-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return &desk{t: t, dir: dir, secrets: []string{password}}
}

func (d *desk) path(name string) string { return filepath.Join(d.dir, name) }

func (d *desk) write(name, content string) {
	d.t.Helper()
	if err := os.WriteFile(d.path(name), []byte(content), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) mkdir(name string) {
	d.t.Helper()
	if err := os.Mkdir(d.path(name), 0o755); err != nil {
		d.t.Fatal(err)
	}
}

// kubeconfig writes a copy of the kubeconfig in which the lines that begin with the key have another value.
func (d *desk) kubeconfig(name, key, value string) {
	d.t.Helper()
	content, err := os.ReadFile(d.path("kubeconfig"))
	if err != nil {
		d.t.Fatal(err)
	}
	lines := strings.Split(string(content), "\n")
	for i, line := range lines {
		if before, _, found := strings.Cut(line, key+": "); found && strings.Trim(before, " -") == "" {
			lines[i] = before + key + ": " + value
		}
	}
	d.write(name, strings.Join(lines, "\n"))
}

// files are the names in the desk's directory, without the kubeconfig.
func (d *desk) files() []string {
	d.t.Helper()
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		d.t.Fatal(err)
	}
	names := []string{}
	for _, entry := range entries {
		if entry.Name() != "kubeconfig" {
			names = append(names, entry.Name())
		}
	}
	return names
}

// usual are flags of run that a test is not about. A later flag wins.
func usual(args ...string) []string {
	return slices.Concat([]string{"run", "--kubeconfig", "kubeconfig", "--state-dir", "state", "--listen", "127.0.0.1:0", "--log-level", "error"}, args)
}

// words splits a command line that has no spaces within its arguments.
func words(line string) []string { return strings.Fields(line) }

// play is a part of a file in testdata: what somebody has configured, if anything, the command after a $, and what it
// is to say. A word in braces stands for what only the test knows.
type play struct {
	name, config string
	args         []string
	want         string
}

// plays are those of the file, with what the names stand for.
func plays(t *testing.T, file string, names ...string) (all []play) {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	known := strings.NewReplacer(append(names, "{password}", password)...)
	for _, part := range archive.Files {
		config, rest, _ := strings.Cut("\n"+known.Replace(string(part.Data)), "\n$ ")
		line, want, _ := strings.Cut(rest, "\n")
		all = append(all, play{part.Name, strings.TrimPrefix(config+"\n", "\n"), words(line), strings.TrimSuffix(want, "\n")})
	}
	return all
}

// code is that of the exit, which the name begins with.
func (p play) code() int { return int(p.name[0] - '0') }

// configure writes what is configured, if anything is.
func (d *desk) configure(p play) {
	d.t.Helper()
	if p.config != "" {
		d.write("config.yaml", p.config)
	}
}

func (d *desk) command(ctx context.Context, args []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, exporter.Path(d.t), args...)
	cmd.Dir = d.dir
	cmd.Env = []string{"HOME=" + d.dir, "PATH=/usr/bin:/bin"}
	return cmd
}

// result is what a run of the exporter left behind.
type result struct{ program.Outcome }

// limit is far above what any of the runs takes.
const limit = 2 * time.Minute

// exporter runs the program to its end.
func (d *desk) exporter(args ...string) result {
	d.t.Helper()
	return d.finish(d.command(d.t.Context(), args))
}

func (d *desk) finish(cmd *exec.Cmd) result {
	d.t.Helper()
	ended := program.Run(d.t, limit, cmd)
	d.showsNoSecret(ended.Stdout + ended.Stderr)
	return result{ended}
}

// showsNoSecret holds every output of every test to I9's word.
func (d *desk) showsNoSecret(output string) {
	d.t.Helper()
	for _, secret := range d.secrets {
		if strings.Contains(output, secret) {
			d.t.Errorf("the output shows a secret:\n%s", output)
		}
	}
}

// fails checks that the run said exactly this and nothing else.
func (r result) fails(t *testing.T, code int, message string) {
	t.Helper()
	if want := "exporter: " + message + "\n"; r.Code != code || r.Stderr != want || r.Stdout != "" {
		t.Errorf("exit code %d, want %d\ngot  %s\nwant %s\n%s", r.Code, code, r.Stderr, want, r.Stdout)
	}
}

// prints checks a run that reports on standard output.
func (r result) prints(t *testing.T, code int, stdout, stderr string) {
	t.Helper()
	if r.Code != code || r.Stdout != stdout || r.Stderr != stderr {
		t.Errorf("exit code %d, want %d\ngot:\n%s\nwant:\n%s\non standard error %q, want %q", r.Code, code, r.Stdout, stdout, r.Stderr, stderr)
	}
}
