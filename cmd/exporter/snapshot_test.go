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
	"github.com/kubecdc/kubecdc/test/script"
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

// TestSnapshotsAreAskedForListedAndSteered: a command asks one question, and nothing where it is written wrongly.
func TestSnapshotsAreAskedForListedAndSteered(t *testing.T) {
	script.Run(t, "testdata/snapshot.txt", func(args string) string {
		s := new(snapshotServer)
		if strings.Contains(args, "refused") {
			s.fail = `no snapshot "refused"; none is owed`
		}
		out, err := snapshotCommandOf(t, s, strings.Fields(args)...)
		told := strings.Join(s.asked, "; ") + "\n" + out
		if err != nil {
			told += fmt.Sprintf("exit code %d: %v", app.ExitCode(err), err)
		}
		return told
	})
}
