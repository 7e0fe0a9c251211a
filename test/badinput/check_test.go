package badinput

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// checkedWell is what check prints of a cluster in which configmaps may be read.
func (d *desk) checkedWell() string {
	d.t.Helper()
	return "ok       configuration\n" +
		"ok       cluster dev at " + d.server + ", uid " + d.clusterUID() + "\n" +
		"ok       resource configmaps\n" + newState
}

// newState is what checking finds where no exporter has run.
const newState = "ok       state none, which the first start makes\n"

// checking are the flags of a check that is not about the state and the address.
func checking(args ...string) []string {
	return slices.Concat([]string{"check", "--kubeconfig", "kubeconfig", "--state-dir", "none", "--listen", "127.0.0.1:0"}, args)
}

// checks runs check for one sink in a cluster that is well.
func (d *desk) checks(t *testing.T, sink string, code int, lines ...string) {
	t.Helper()
	stderr := ""
	if code != 0 {
		stderr = "exporter: check found 1 problem\n"
	}
	d.exporter(checking("--resources", "configmaps", "--sink", sink)...).
		prints(t, code, d.checkedWell()+strings.Join(lines, "\n")+"\n", stderr)
}

// TestCheckChangesNothing where all is well: neither file nor state nor stream is there afterwards.
func TestCheckChangesNothing(t *testing.T) {
	d := newDesk(t)
	d.write("there", "{}\n")
	b := startBroker(t)
	d.checks(t, "file://"+d.path("missing"), 0, "ok       sink file")
	d.checks(t, "file://"+d.path("there"), 0, "ok       sink file")
	d.checks(t, "-", 0, "ok       sink stdout")
	d.checks(t, b.URL(), 0, "ok       sink nats",
		"note     sink nats: the largest message is 1024 KiB, and objects can have 1536 KiB: a gap record will stand for one that is larger; "+
			"raise max_payload of the server and max_msg_size of the stream to take all")
	if left := d.files(); !slices.Equal(left, []string{"there"}) {
		t.Errorf("left behind: %q", left)
	}
	if streams := b.streams(); len(streams) > 0 {
		t.Errorf("made streams %q", streams)
	}
}

// TestCheckSaysAllThatThereIs, whether it is wrong or not.
func TestCheckSaysAllThatThereIs(t *testing.T) {
	d := newDesk(t)
	grant(t, "configmaps")
	d.kubeconfig("down", "server", "https://127.0.0.1:1")
	for _, p := range plays(t, "check.txtar", "{server}", d.server, "{uid}", d.clusterUID()) {
		t.Run(p.name, func(t *testing.T) {
			d.configure(p)
			stderr := ""
			if problems := strings.Count("\n"+p.want, "\nproblem "); problems > 0 {
				stderr = strings.TrimSuffix(fmt.Sprintf("exporter: check found %d problems", problems), map[int]string{1: "s"}[problems]) + "\n"
			}
			d.exporter(checking(p.args...)...).prints(t, p.code(), p.want+"\n", stderr)
		})
	}
}

func TestI9CheckOfEverythingHasNoSecrets(t *testing.T) {
	d := newDesk(t)
	r := d.exporter(checking("--resources", "*", "--sink", "-")...)
	if r.Code != 0 || strings.Contains(r.Stdout, "ok       resource secrets") {
		t.Errorf("exit code %d:\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	for _, line := range []string{
		"ok       resource configmaps, of *",
		"note     resource secrets is left out: secrets are streamed only where they are named",
		"note     resource events.events.k8s.io is left out: its objects are those of events",
		"note     resource componentstatuses is left out: it cannot be watched, its verbs are get, list",
	} {
		if !strings.Contains(r.Stdout, line+"\n") {
			t.Errorf("got\n%s\nwant in it %s", r.Stdout, line)
		}
	}
}

// TestI4WildcardOfAnAPIServerThatCannotTellAll: what "*" misses is said, by check and in the log.
func TestI4WildcardOfAnAPIServerThatCannotTellAll(t *testing.T) {
	d := newDesk(t)
	const path, name = "/apis/apiregistration.k8s.io/v1/apiservices", "v1.broken.example.com"
	api := admin(t).CoreV1().RESTClient()
	body := `{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"` + name + `"},"spec":{"group":"broken.example.com",` +
		`"version":"v1","service":{"namespace":"default","name":"gone"},"insecureSkipTLSVerify":true,"groupPriorityMinimum":1000,"versionPriority":10}}`
	if err := api.Post().AbsPath(path).Body([]byte(body)).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := api.Delete().AbsPath(path, name).Do(contextOfCleanup(t)).Error(); err != nil {
			t.Error(err)
		}
	})
	const cause = "unable to retrieve the complete list of server APIs: broken.example.com/v1: stale GroupVersion discovery: broken.example.com/v1"
	note := "note     API discovery is incomplete, so a wildcard may miss resources: " + cause + "\n"
	var r result
	eventually(t, "the API server knows of the group", func() bool {
		r = d.exporter(checking("--resources", "*.apps", "--sink", "-")...)
		return strings.Contains(r.Stdout, "\nnote ")
	})
	if r.Code != 0 || !strings.Contains(r.Stdout, note) {
		t.Errorf("exit code %d\ngot:\n%s\nwant in it:\n%s", r.Code, r.Stdout, note)
	}
	run := d.start(usual("--resources", "*.apps", "--sink", "file://"+d.path("out"), "--log-level", "info")...)
	_, said, _ := strings.Cut(run.logs("discovery is incomplete"), " ")
	if want := fmt.Sprintf(`level=WARN msg="API discovery is incomplete; retrying; streams of resources that are missing from it continue" error=%q`, cause); said != want {
		t.Errorf("got  %s\nwant %s", said, want)
	}
	run.logs("msg=watching streams=")
	run.stopsWell()
	d.write("config.yaml", "resources: [{resource: parts.broken.example.com, required: true}]\nsinks: [{name: out, file: {path: \"-\"}}]\n")
	d.exporter(usual("-f", "config.yaml")...).fails(t, 1,
		"ask the API server "+d.server+`: resource "parts.broken.example.com": the API server serves no such resource: see kubectl api-resources (its discovery was not complete: `+cause+")")
}
