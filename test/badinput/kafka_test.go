package badinput

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecdc/kubecdc/test/kafka"
)

// kafkaConfig writes a configuration with one sink, lake, whose settings these are.
func (d *desk) kafkaConfig(brokers []string, settings string) {
	d.t.Helper()
	d.write("config.yaml", fmt.Sprintf("resources: [configmaps]\nsinks:\n  - {name: lake, kafka: {brokers: [%s]%s}}\n", strings.Join(brokers, ", "), settings))
}

// lakeFails checks what check and run say of the sink. check may find several problems, each on a line of its own.
func (d *desk) lakeFails(t *testing.T, check []string, run string) {
	t.Helper()
	code, lines, summary := 1, "problem  sink lake: "+strings.Join(check, "\nproblem  sink lake: "), "exporter: check found 1 problem\n"
	if n := len(check); n > 1 {
		summary = fmt.Sprintf("exporter: check found %d problems\n", n)
	}
	d.exporter(checking("-f", "config.yaml")...).prints(t, code, d.checkedWell()+lines+"\n", summary)
	d.exporter(usual("-f", "config.yaml")...).failsSoonOrLate(t, "lake", "open sink lake: "+run)
}

// failsSoonOrLate checks a run that ends by its one sink's error. A broker on a busy machine may answer when objects
// are read already: then, and only then, what stays undelivered is told after it.
func (r result) failsSoonOrLate(t *testing.T, sink, message string) {
	t.Helper()
	told := `exporter: ` + regexp.QuoteMeta(message) + `\n`
	left := `stop within 20s: left undelivered: sink ` + sink + `: [1-9][0-9]* records: the next start continues there\n`
	want := regexp.MustCompile(`^` + told + `(?:` + left + `)?$`)
	if r.Code != 1 || !want.MatchString(r.Stderr) || r.Stdout != "" {
		t.Errorf("exit code %d, want 1\ngot  %s\nwant exporter: %s\n%s", r.Code, r.Stderr, message, r.Stdout)
	}
}

// TestKafkaMistakes: the first line of what is wanted is what run says; check says the others, or the same.
func TestKafkaMistakes(t *testing.T) {
	kafka.RequireReal(t)
	c := brokers.Get(t)
	d := newDesk(t)
	c.CreateTopic(t, "few", kafka.Topic{Config: map[string]string{"min.insync.replicas": "2"}})
	allowed := map[string]kmsg.ACLOperation{
		"no permission to write": kmsg.ACLOperationDescribe, "no permission for the transactional id": kmsg.ACLOperationWrite,
	}
	for _, p := range plays(t, "kafka.txtar", "{plain}", c.Brokers()[0], "{sasl}", c.BrokersAt(kafka.SASL)[0], "{tls}", c.BrokersAt(kafka.TLS)[0],
		"{foreignCA}", c.Certificates().ForeignCA) {
		t.Run(p.name, func(t *testing.T) {
			if operation, some := allowed[p.name]; some {
				c.AddACL(t, kafka.ACL{User: "alice", Operation: operation, Resource: "few"})
			}
			d.configure(p)
			lines := strings.Split(p.want, "\n")
			d.lakeFails(t, lines[min(1, len(lines)-1):], lines[0])
		})
	}
	t.Run("I4 a record that is larger than the topic takes", func(t *testing.T) { d.largeRecord(t, c) })
}

// largeRecord: a gap record stands in the place of the object, between those before and after it.
func (d *desk) largeRecord(t *testing.T, c *kafka.Cluster) {
	c.CreateTopic(t, "narrow", kafka.Topic{Config: map[string]string{"max.message.bytes": "4000"}})
	d.kafkaConfig(c.Brokers(), ", topic: narrow, compression: none")
	namespace := newNamespace(t)
	r := d.start(usual("-f", "config.yaml", "--log-level", "info")...)
	r.logs("msg=\"snapshot complete\" resource=configmaps reason=initial") // what is made from now on is added
	for i, name := range []string{"first", "large", "last"} {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"text": strings.Repeat("x", i%2*6000)}}
		if _, err := admin(t).CoreV1().ConfigMaps(namespace).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	_, said, _ := strings.Cut(r.logs("level=ERROR"), "error=")
	if want := "topic narrow takes 4000: raise max.message.bytes of the topic\" records=1"; !strings.HasSuffix(said, want) {
		t.Errorf("the log says %s, want %q at the end", said, want)
	}
	var told []string
	eventually(t, "the last object is in the topic", func() bool {
		told = nil
		for _, record := range c.ConsumeFast(t, "narrow", kafka.JudgeOptions{ReadCommitted: true}) {
			var e struct{ Type, Namespace, Name, Reason string }
			if err := json.Unmarshal(record.Value, &e); err != nil {
				t.Fatal(err)
			}
			if e.Namespace == namespace {
				told = append(told, strings.TrimSuffix(strings.TrimPrefix(e.Type, "dev.kubecdc.")+" "+e.Name+" "+e.Reason, " "))
			}
		}
		return strings.HasSuffix(strings.Join(told, ", "), "last")
	})
	if got, want := strings.Join(told, ", "), "added first, gap large policy, added last"; got != want {
		t.Errorf("the topic has %q, want %q", got, want)
	}
	r.stopsWell()
}

// TestKafkaUnreachableAtTheStart keeps trying, says so once, and leaves when it is told to.
func TestKafkaUnreachableAtTheStart(t *testing.T) {
	d := newDesk(t)
	d.kafkaConfig([]string{"127.0.0.1:1"}, "")
	r := d.start(usual("-f", "config.yaml", "--log-level", "info")...)
	_, said, _ := strings.Cut(r.logs("sink retries"), " ")
	said, _, _ = strings.Cut(said, " waiting=")
	const want = `level=WARN msg="sink retries" sink=lake reason=unreachable error="connect to 127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused: ` +
		`check that the broker is up, the address in kafka.brokers and the brokers' advertised.listeners, and whether the listener wants kafka.tls or kafka.sasl"`
	if said != want {
		t.Errorf("got  %s\nwant %s", said, want)
	}
	r.stopsWell()
}
