package badinput

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestAddressThatAKilledExporterLeft is not asked: somebody else may listen there now.
func TestAddressThatAKilledExporterLeft(t *testing.T) {
	d := newDesk(t)
	r := d.begun("--sink", "-")
	eventually(t, "the first snapshot is saved", func() bool { return r.status().Streams["configmaps"].ResourceVersion != "" })
	r.cmd.Process.Kill()
	<-r.exited
	if _, err := os.Stat(d.path("state/address")); err != nil {
		t.Errorf("the killed exporter left no address: %v", err)
	}
	d.exporter("snapshot", "--state-dir", "state").fails(t, 1,
		"no exporter runs with the state in state: start it, or name its directory with --state-dir or its address with --server")
	if show := d.exporter("checkpoint", "show", "--state-dir", "state"); show.Code != 0 || !strings.Contains(show.Stdout, "configmaps") {
		t.Errorf("exit code %d: %s%s", show.Code, show.Stdout, show.Stderr)
	}
	again := d.started("--sink", "-")
	d.exporter("snapshot", "--state-dir", "state", "--wait")
	again.stopsWell()
	if _, err := os.Stat(d.path("state/address")); err == nil {
		t.Error("the stopped exporter left its address")
	}
}

// TestWhatARunningExporterRefuses is the asker's mistake, and named with what there is.
func TestWhatARunningExporterRefuses(t *testing.T) {
	d := newDesk(t)
	d.write("config.yaml", `resources: [configmaps, deployments.apps, {resource: secrets, namespaces: [shop]}]
sinks:
  - {name: screen, file: {path: "-"}}
  - {name: few, file: {path: few.ndjson}, resources: [deployments.apps]}
`)
	r := d.start(usual("-f", "config.yaml", "--log-level", "info")...)
	r.logs("msg=watching streams=")
	_, address, _ := strings.Cut(r.logs("serving metrics and status"), "address=")
	const streams = "configmaps, deployments.apps, shop/secrets"
	for _, c := range []struct{ name, line, want string }{
		{"unknown resource", "snapshot --resources pods,configmaps,foo", `no stream of "pods", "foo"; there are: ` + streams},
		{"unknown sink", "snapshot --sink lake", `no sink "lake"; there are: few, screen`},
		{"sink that does not take it", "snapshot --resources configmaps --sink few", "configmaps: none of these sinks takes it: few"},
		{"unknown resource of the inventory", "inventory list --resources pods", `no stream of "pods"; there are: ` + streams},
	} {
		t.Run(c.name, func(t *testing.T) {
			d.exporter(append(words(c.line), "--state-dir", "state")...).fails(t, 2, c.want)
			asked := d.command(t.Context(), append(words(c.line), "--server", address))
			asked.Env = append(asked.Env, "KUBECDC_TOKEN="+d.token())
			d.finish(asked).fails(t, 2, c.want)
		})
	}
	d.exporter("inventory", "list", "--server", address).fails(t, 1, "ask the exporter at http://"+address+": this is answered to the exporter's own user alone: "+
		"run the command with --state-dir on the exporter's host or in its pod, or give it with --server the token, which is the third word of the file address in the state directory, in the environment as KUBECDC_TOKEN")
	d.exporter("inventory", "get", "--state-dir", "state", "--resources", "deployments", "-n", "shop", "web").fails(t, 1,
		"the inventory has no such object: no sink was given it, or it is deleted")
	d.exporter("inventory", "list", "--state-dir", "state", "--resources", "secret").prints(t, 0, "", "no objects\n")
	d.exporter("snapshot", "--state-dir", "state", "--resources", "configmap").prints(t, 0, "a full snapshot of configmaps is owed to screen, few\n", "")
	r.stopsWell()
}

// token is what the running exporter wants to be shown.
func (d *desk) token() string {
	d.t.Helper()
	text, err := os.ReadFile(d.path("state/address"))
	part := strings.Fields(string(text))
	if err != nil || len(part) != 3 {
		d.t.Fatalf("the address is %q, %v", text, err)
	}
	return part[2]
}

// TestExporterWhoseSinkIsNotOpen streams all the same, and owes the sink what is asked for.
func TestExporterWhoseSinkIsNotOpen(t *testing.T) {
	d := newDesk(t)
	r := d.start(usual("--resources", "configmaps", "--sink", "nats://127.0.0.1:1", "--log-level", "info")...)
	r.logs("serving metrics and status")
	d.exporter("snapshot", "--state-dir", "state").prints(t, 0, "a full snapshot of configmaps is owed to nats\n", "")
	if code := r.stop(); code != 0 && !strings.Contains(r.out.String(), "left undelivered: sink nats") {
		t.Errorf("exit code %d:\n%s", code, r.out)
	}
}

// TestOnlyThisHostIsServedUnlessItIsSaid: without an address, the one that is taken is a loopback address.
func TestOnlyThisHostIsServedUnlessItIsSaid(t *testing.T) {
	if listener, err := net.Listen("tcp", "127.0.0.1:8080"); err == nil { // or somebody else has it
		defer listener.Close()
	}
	d := newDesk(t)
	d.exporter(words("run --kubeconfig kubeconfig --state-dir state --log-level error --resources configmaps --sink -")...).fails(t, 1,
		"listen on 127.0.0.1:8080: address already in use: choose another address with --listen, or with listen in the configuration")
}

// TestOtherHostsAreRefused, and so is what only looks like this one.
func TestOtherHostsAreRefused(t *testing.T) {
	d := newDesk(t)
	r := d.start(usual("--resources", "configmaps", "--sink", "-", "--log-level", "info", "--listen", ":0")...)
	r.logs("msg=watching streams=")
	_, address, _ := strings.Cut(r.logs("serving metrics and status"), "address=")
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	const elsewhere = "run the command on the exporter's host, in its pod, or through kubectl port-forward"
	if host := otherAddress(); host != "" {
		server := "http://" + net.JoinHostPort(host, port)
		want := "ask the exporter at " + server + ": this is answered on the loopback interface only: " + elsewhere
		d.exporter("snapshot", "--server", server).fails(t, 1, want)
		d.exporter("inventory", "list", "--server", server).fails(t, 1, want)
	} else {
		t.Log("this machine has no address but loopback: other hosts are tested in internal/control alone")
	}
	request, err := http.NewRequestWithContext(t.Context(), "POST", "http://127.0.0.1:"+port+"/snapshot", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Host = "rebound.example.com"
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusForbidden {
		t.Errorf("a rebound name is answered with %s", response.Status)
	}
	if show := d.exporter("checkpoint", "show", "--state-dir", "state"); show.Code != 0 {
		t.Errorf("exit code %d: %s", show.Code, show.Stderr)
	}
	r.stopsWell()
}

// otherAddress is an address of this machine that is no loopback address, "" where it has none.
func otherAddress() string {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return ""
	}
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && network.IP.IsGlobalUnicast() && network.IP.To4() != nil {
			return network.IP.String()
		}
	}
	return ""
}

func TestServerThatIsNoExporter(t *testing.T) {
	d := emptyDesk(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>")) }))
	defer server.Close()
	d.exporter("snapshot", "--server", server.URL).fails(t, 1, "read the answer of the exporter at "+server.URL+
		": invalid character '<' looking for beginning of value: check that an exporter listens there")
	d.exporter("snapshot", "--server", "127.0.0.1:1").fails(t, 1, "ask the exporter at http://127.0.0.1:1: connection refused: check that it runs and listens there")
}

// TestHangupIsNoEnd: SIGHUP ends most programs.
func TestHangupIsNoEnd(t *testing.T) {
	d := newDesk(t)
	r := d.started("--sink", "-")
	if err := r.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	r.logs(`msg="SIGHUP requested a full snapshot" resources=configmaps sinks=stdout`)
	r.logs("msg=\"snapshot complete\" resource=configmaps reason=requested")
	r.stopsWell()
}
