package badinput

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/micro"

	"github.com/kubecdc/kubecdc/test/natsserver"
)

// servedBy is a configuration with a service.
func (d *desk) servedBy(url, service string) {
	d.write("config.yaml", fmt.Sprintf("resources: [configmaps]\nsinks: [{name: bus, nats: {url: %q, service: %s}}]\n", url, service))
}

func TestServiceBelowTheStreamsSubjects(t *testing.T) {
	d := newDesk(t)
	b := startBroker(t)
	d.servedBy(b.URL(), `{subject: "k8s.{cluster}"}`)
	d.exporter(usual("-f", "config.yaml")...).fails(t, 2,
		"sink bus: nats.service.subject: the stream takes k8s.dev.*.*.*.*, and so would keep the questions below k8s.dev: choose another subject")
}

// TestServiceThatIsNotPermitted is a problem for check, and none for the records of the running exporter.
func TestServiceThatIsNotPermitted(t *testing.T) {
	d := newDesk(t)
	b := startBroker(t, func(o *natsserver.Options) {
		o.Users = []*server.User{{Username: "me", Password: password, Permissions: &server.Permissions{
			Subscribe: &server.SubjectPermission{Deny: []string{"kubecdc.dev.snapshot"}},
		}}}
	})
	d.servedBy(b.as("me:"+password), "{}")
	const want = `serve kubecdc.dev.>: subscription to "kubecdc.dev.snapshot"`
	if checked := d.exporter(checking("-f", "config.yaml")...); checked.Code != 1 || !strings.Contains(checked.Stdout, "problem  sink bus: "+want) {
		t.Errorf("check says %s", checked.Stdout)
	}
	r := d.start(usual("-f", "config.yaml", "--log-level", "info")...)
	if line := r.logs("nobody can ask through the sink's broker"); !strings.Contains(strings.ReplaceAll(line, `\`, ""), want) {
		t.Errorf("the log says %s", line)
	}
	eventually(t, "the sink is open all the same", func() bool { return r.status().Sinks["bus"].State == "open" })
}

// TestHostileQuestions are refused in words, and the exporter goes on.
func TestHostileQuestions(t *testing.T) {
	d := newDesk(t)
	b := startBroker(t)
	d.servedBy(b.URL(), "{}")
	r := d.start(usual("-f", "config.yaml", "--log-level", "info")...)
	r.logs("watching")
	nc := b.jetstream().Conn()
	long := strings.Repeat("x", 5000)
	for _, c := range []struct{ name, question, code, want string }{
		{"snapshot", "{", "400", "read the request: unexpected EOF: want JSON such as"},
		{"snapshot", `{"resource":"pods"}`, "400", `unknown field "resource"`},
		{"snapshot", `{"resources":["` + long + `"]}`, "400", `no stream of "xxx`},
		{"snapshot", `{"namespace":"` + long + `"}`, "400", "cannot be one"},
		{"snapshot", `{"id":"` + long + `"}`, "400", "an id of 5000 bytes: want 256 at most"},
		{"snapshot", strings.Repeat("[", 60_000), "400", "read the request"},
		{"snapshot", strings.Repeat(" ", 400_000), "413", "a question of 400000 bytes: want 65536 at most"},
		{"pause", ``, "400", "want JSON such as"},
		{"stop", `{"ids":[]}`, "400", `"stop" of 0 snapshots`},
		{"resume", `{"ids":["` + long + `"]}`, "400", "none is owed"},
	} {
		answer, err := nc.Request("kubecdc.dev."+c.name, []byte(c.question), limit)
		if err != nil {
			t.Fatalf("%s %.40s: %v", c.name, c.question, err)
		}
		if code := answer.Header.Get(micro.ErrorCodeHeader); code != c.code || !strings.Contains(strings.ReplaceAll(string(answer.Data), `\"`, `"`), c.want) {
			t.Errorf("%s %.40s: %s %.300s", c.name, c.question, code, answer.Data)
		}
	}
	if n := r.times("refused what was asked"); n != 1 {
		t.Errorf("the log has %d lines of what was refused", n)
	}
	if code := r.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
