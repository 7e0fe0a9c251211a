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

// TestKafkaMistakes: one broker with all its doors, where alice may log in and do nothing at first.
func TestKafkaMistakes(t *testing.T) {
	kafka.RequireReal(t)
	c := kafka.Start(t, kafka.Options{
		Listeners: []kafka.Listener{kafka.SASL, kafka.TLS}, Users: map[string]string{"alice": password}, ACLs: true,
	})
	d := newDesk(t)
	plain, sasl, tls := c.Brokers(), c.BrokersAt(kafka.SASL), c.BrokersAt(kafka.TLS)
	login := ", sasl: {mechanism: SCRAM-SHA-256, user: alice, password: %s}"
	right := fmt.Sprintf(login, password)
	c.CreateTopic(t, "few", kafka.Topic{Config: map[string]string{"min.insync.replicas": "2"}})
	allow := func(operation kmsg.ACLOperation) func() {
		return func() { c.AddACL(t, kafka.ACL{User: "alice", Operation: operation, Resource: "few"}) }
	}
	const (
		noProducer = "get a producer id: Kafka's error 31 CLUSTER_AUTHORIZATION_FAILED: the user is not permitted: " +
			"grant the user WRITE on the topics, or IDEMPOTENT_WRITE on the cluster"
		noTransaction = "find the coordinator of transactional id kubecdc-dev-lake: Kafka's error 53 TRANSACTIONAL_ID_AUTHORIZATION_FAILED: " +
			"Transactional Id authorization failed.: the user is not permitted, or the request does not name the transactional id of its batch: " +
			"grant the user WRITE on transactional id kubecdc-dev-lake"
		noLookUp    = "look up topic few: Kafka's error 29 TOPIC_AUTHORIZATION_FAILED: the user is not permitted: grant the user DESCRIBE on topic few"
		noWrite     = "write to topic few: the user is not permitted: grant WRITE on topic few"
		fewReplicas = "open topic few: partition 0 has 1 replicas, and min.insync.replicas is 2, so no record can be acknowledged: " +
			"lower min.insync.replicas of the topic, or give it more replicas"
	)
	for _, m := range []struct {
		name     string
		before   func()
		brokers  []string
		settings string
		run      string
		check    []string // nil is as run
	}{
		{"wrong password", nil, sasl, fmt.Sprintf(login, "no"+password),
			"log in to Kafka as alice with SCRAM-SHA-256: Kafka's error 58 SASL_AUTHENTICATION_FAILED: Authentication failed during authentication due to invalid credentials " +
				"with SASL mechanism SCRAM-SHA-256: the broker does not accept the login: check kafka.sasl.user, kafka.sasl.password", nil},
		{"wrong CA", nil, tls, ", tls: {ca: " + c.Certificates().ForeignCA + "}",
			"connect to " + tls[0] + ": the broker's certificate is signed by an authority that is not trusted: tls: failed to verify certificate: " +
				"x509: certificate signed by unknown authority: set kafka.tls.ca to a file with the authority's certificate", nil},
		{"no TLS to a port with TLS", nil, tls, "",
			"connect to " + tls[0] + ": the port speaks TLS: set kafka.tls, or use the port of a listener without TLS in kafka.brokers", nil},
		{"TLS to a port without", nil, plain, ", tls: {}",
			"connect to " + plain[0] + ": the listener has no TLS: EOF: remove kafka.tls, or use the port of a TLS listener in kafka.brokers", nil},
		{"no login", nil, sasl, "",
			"connect to " + sasl[0] + ": the listener wants a login with OAUTHBEARER, PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, and none is configured: " +
				"send Metadata to Kafka: unexpected EOF: set kafka.sasl, or use the port of a listener without SASL in kafka.brokers", nil},
		{"no permission", nil, sasl, right + ", topic: few", noLookUp, []string{noLookUp, noProducer}},
		{"no permission to write", allow(kmsg.ACLOperationDescribe), sasl, right + ", topic: few", noWrite, []string{noWrite, noProducer}},
		{"no permission for the transactional id", allow(kmsg.ACLOperationWrite), sasl, right + ", topic: few, delivery: transactional", noTransaction, nil},
		{"no such topic", nil, plain, ", topic: none, create: false", "open topic none: it does not exist: create it, or let the exporter do it with kafka.create",
			[]string{"look up topic none: it does not exist: create it, or let the exporter do it with kafka.create"}},
		{"acknowledgements that cannot be given", nil, plain, ", topic: few", fewReplicas, nil},
	} {
		t.Run(m.name, func(t *testing.T) {
			if m.before != nil {
				m.before()
			}
			if m.check == nil {
				m.check = []string{m.run}
			}
			d.kafkaConfig(m.brokers, m.settings)
			d.lakeFails(t, m.check, m.run)
		})
	}
	t.Run("a topic that the brokers do not make", func(t *testing.T) { d.topicsRefused(t, plain) })
	t.Run("I4 a record that is larger than the topic takes", func(t *testing.T) { d.largeRecord(t, c) })
}

// topicsRefused is what only the brokers know. A check asks them, and makes no topic.
func (d *desk) topicsRefused(t *testing.T, brokers []string) {
	t.Helper()
	for settings, want := range map[string]string{
		", replication: 3": "Kafka's error 38 INVALID_REPLICATION_FACTOR: Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached " +
			"because only 1 broker(s) are registered.: there are fewer brokers than replicas asked for: set kafka.replication to at most the number of brokers, or leave it out",
		`, topicConfig: {retention.mss: "1"}`: "Kafka's error 40 INVALID_CONFIG: Unknown topic config name: retention.mss: Kafka does not take a setting of the topic: correct kafka.topicConfig",
	} {
		d.kafkaConfig(brokers, ", topic: none"+settings)
		d.lakeFails(t, []string{"create topic none: " + want}, "create topic none: "+want)
	}
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
	if want := "topic narrow takes 4000: raise max.message.bytes of the topic\""; !strings.HasSuffix(said, want) {
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
	const want = `level=WARN msg="sink retries" sink=lake reason=unreachable error="connect to 127.0.0.1:1: nobody listens there: dial tcp 127.0.0.1:1: connect: connection refused: ` +
		`check the port in kafka.brokers and in the brokers' advertised.listeners, and that the broker is up"`
	if said != want {
		t.Errorf("got  %s\nwant %s", said, want)
	}
	r.stopsWell()
}
