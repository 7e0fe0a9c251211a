package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/app"
)

// snapshotServer answers as an exporter that owes two snapshots, and notes what it is asked.
type snapshotServer struct {
	asked []string
	fail  string // what every question is refused with
}

func (s *snapshotServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.asked = append(s.asked, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+string(body)))
	switch {
	case s.fail != "":
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":%q}`, s.fail)
	case r.Method == http.MethodPost:
		fmt.Fprint(w, `{"streams":["pods"],"sinks":["bus"],"limits":{"namespace":"shop"}}`)
	default:
		fmt.Fprint(w, `{"owed":[{"id":"7mare7x","sink":"bus","stream":"pods","reason":"requested","state":"reads","objects":500,"percent":33},`+
			`{"id":"0q5k2vn","sink":"lake","stream":"shop/secrets","reason":"resync","state":"paused"}]}`)
	}
}

// snapshotCommandOf runs exporter snapshot against the server.
func snapshotCommandOf(t *testing.T, s *snapshotServer, args ...string) (out string, err error) {
	t.Helper()
	server := httptest.NewServer(s)
	defer server.Close()
	var text bytes.Buffer
	cmd := newRootCommand()
	cmd.SetOut(&text)
	cmd.SetErr(&text)
	cmd.SetArgs(append([]string{"snapshot", "--server", server.URL}, args...))
	err = cmd.ExecuteContext(t.Context())
	return text.String(), err
}

func TestSnapshotsAreListed(t *testing.T) {
	const table = `ID       RESOURCE      SINK  REASON     STATE   PROGRESS
7mare7x  pods          bus   requested  reads   33%
0q5k2vn  shop/secrets  lake  resync     paused  -
`
	if out, err := snapshotCommandOf(t, new(snapshotServer), "--list"); err != nil || out != table {
		t.Errorf("%v: printed\n%s\nwant\n%s", err, out, table)
	}
	const lines = `{"id":"7mare7x","sink":"bus","stream":"pods","reason":"requested","state":"reads","objects":500,"percent":33}
{"id":"0q5k2vn","sink":"lake","stream":"shop/secrets","reason":"resync","state":"paused"}
`
	if out, err := snapshotCommandOf(t, new(snapshotServer), "--list", "-o", "json"); err != nil || out != lines {
		t.Errorf("%v: printed\n%s\nwant\n%s", err, out, lines)
	}
}

func TestSnapshotsAreSteered(t *testing.T) {
	for _, c := range []struct{ args, asked, out string }{
		{"--pause 7mare7x", `{"do":"pause","ids":["7mare7x"]}`, "paused: 7mare7x\n"},
		{"--resume 7mare7x,0q5k2vn", `{"do":"resume","ids":["7mare7x","0q5k2vn"]}`, "resumed: 7mare7x, 0q5k2vn\n"},
		{"--stop 7mare7x --stop 0q5k2vn", `{"do":"stop","ids":["7mare7x","0q5k2vn"]}`, "stopped: 7mare7x, 0q5k2vn\n"},
	} {
		s := new(snapshotServer)
		out, err := snapshotCommandOf(t, s, strings.Fields(c.args)...)
		if got := strings.Join(s.asked, "; "); err != nil || got != "POST /snapshot/steer "+c.asked || out != c.out {
			t.Errorf("%s: %v: asks %s and prints %s", c.args, err, got, out)
		}
	}
	s := &snapshotServer{fail: `no snapshot "x"; none is owed`}
	if _, err := snapshotCommandOf(t, s, "--stop", "x"); err == nil || err.Error() != s.fail {
		t.Errorf("error %v, want %s", err, s.fail)
	}
}

func TestASnapshotOfAPartSaysOfWhich(t *testing.T) {
	s := new(snapshotServer)
	out, err := snapshotCommandOf(t, s, "--resources", "pods", "-n", "shop", "-l", "app=web", "--name", "web")
	const asked = `POST /snapshot {"resources":["pods"],"namespace":"shop","name":"web","selector":"app=web"}`
	if err != nil || len(s.asked) != 1 || s.asked[0] != asked || out != "a full snapshot of pods (namespace shop) is owed to bus\n" {
		t.Errorf("%v: asked %q, printed %s", err, s.asked, out)
	}
}

// TestASnapshotCommandAsksOneQuestion, and asks nothing where it is written wrongly.
func TestASnapshotCommandAsksOneQuestion(t *testing.T) {
	for args, want := range map[string]string{
		"--list --wait":              "--list and --wait: each is a question of its own: leave out one of them",
		"--list --stop 7mare7x":      "--list and --stop: each is a question of its own: leave out one of them",
		"--pause a --resume b":       "--pause and --resume: each is a question of its own: leave out one of them",
		"--stop a --resources pods":  "--stop and --resources: each is a question of its own: leave out one of them",
		"--stop=":                    "--stop: give the ID of a snapshot, as --list shows it",
		"--pause a,,b":               "--pause: give the ID of a snapshot, as --list shows it",
		"--list -n shop":             "--list and --namespace: each is a question of its own: leave out one of them",
		"--stop a -l app=web":        "--stop and --selector: each is a question of its own: leave out one of them",
		"--namespace=":               "--namespace: it is empty: leave it out for all objects",
		"--selector=":                "--selector: it is empty: leave it out for all objects",
		"--name=":                    "--name: it is empty: leave it out for all objects",
		"-o json":                    "--output: only --list prints a table",
		"--list -o yaml":             `--output "yaml": want table or json`,
		"--list --state-dir ./state": "--server and --state-dir: give one of them",
	} {
		s := new(snapshotServer)
		if _, err := snapshotCommandOf(t, s, strings.Fields(args)...); err == nil || err.Error() != want || app.ExitCode(err) != 2 || len(s.asked) > 0 {
			t.Errorf("%s: error is %v, want %s; asked %q", args, err, want, s.asked)
		}
	}
}
