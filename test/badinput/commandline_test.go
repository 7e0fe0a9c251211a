package badinput

import (
	"net"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestWrongCommandLineExits2, and so does a wrong configuration, all of whose mistakes are named at once. It needs no
// cluster: nothing is asked before both are right. What is asked of a state that there is not exits with 1, and makes
// nothing.
func TestWrongCommandLineExits2(t *testing.T) {
	d := emptyDesk(t)
	d.mkdir("empty")
	for _, p := range plays(t, "commandline.txtar") {
		t.Run(p.name, func(t *testing.T) {
			d.configure(p)
			d.exporter(p.args...).fails(t, p.code(), p.want)
		})
	}
	if left := d.files(); !slices.Equal(left, []string{"config.yaml", "empty"}) {
		t.Errorf("left behind: %q", left)
	}
}

func TestListenAddressInUse(t *testing.T) {
	d := newDesk(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	address := listener.Addr().String()
	d.exporter(usual("--resources", "configmaps", "--sink", "-", "--listen", address)...).fails(t, 1,
		"listen on "+address+": address already in use: choose another address with --listen, or with listen in the configuration")
	d.exporter("dev", "--nats-listen", address).fails(t, 1,
		"listen on "+address+": address already in use: choose another address with --nats-listen")
}

// TestHelpIsNoMistake: a command that is nothing without its own commands explains itself.
func TestHelpIsNoMistake(t *testing.T) {
	d := emptyDesk(t)
	for _, line := range []string{"", "--help", "checkpoint", "inventory", "snapshot --help", "inventory get --help", "run --help", "checkpoint set --help"} {
		if r := d.exporter(words(line)...); r.Code != 0 || r.Stderr != "" || r.Stdout == "" {
			t.Errorf("exporter %s: exit code %d, standard error %q", line, r.Code, r.Stderr)
		}
	}
	if _, err := os.Stat(d.path("state")); err == nil {
		t.Error("a state was made")
	}
}

// TestI6AnErrorIsNoLongLine, whatever it is about.
func TestI6AnErrorIsNoLongLine(t *testing.T) {
	o := emptyDesk(t).exporter("verify", "--output", strings.Repeat("n", 100_000))
	if o.Code != 2 || len(o.Stderr) > 10_000 || !strings.HasPrefix(o.Stderr, `exporter: --output "nnn`) {
		t.Errorf("exit code %d and %d bytes: %.300s", o.Code, len(o.Stderr), o.Stderr)
	}
}
