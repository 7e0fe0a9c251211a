package docs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
	"sigs.k8s.io/yaml"

	"github.com/kubecdc/kubecdc/test/kafka"
)

// TestKafkaInProductionAsItIsPrinted: the sink of the page's values.yaml, with the rights that the page gives, on three
// brokers that ask for TLS and a password, and the table of reading-kafka.md with the login that it prints.
func TestKafkaInProductionAsItIsPrinted(t *testing.T) {
	kafka.RequireReal(t)
	cluster := kafka.Start(t, kafka.Options{
		Nodes: 3, Listeners: []kafka.Listener{kafka.SASLTLS}, ACLs: true, Users: map[string]string{"kubecdc": "secret", "lake": "..."},
	})
	production, reading := filepath.Join("docs", "kafka.md"), filepath.Join("docs", "reading-kafka.md")
	all := pages(t)
	for _, b := range blocks(t, production, all[production]) {
		if strings.Contains(b.text, "kafka-acls.sh") {
			grant(t, cluster, b.text)
		}
	}
	for _, right := range []kafka.ACL{{Type: kmsg.ACLResourceTypeTopic, Resource: "k8s.", Prefix: true}, {Type: kmsg.ACLResourceTypeGroup, Resource: "*"}} {
		right.User, right.Operation = "lake", kmsg.ACLOperationRead
		cluster.AddACL(t, right)
	}

	w := newWorld(t)
	w.stop()
	if err := os.RemoveAll(w.path("state")); err != nil { // of another cluster's name
		t.Fatal(err)
	}
	w.write("password", "secret\n")
	var values struct {
		Config map[string]any `json:"config"`
	}
	for _, b := range blocks(t, production, all[production]) {
		if b.notes["file"] == "values.yaml" {
			if err := yaml.Unmarshal([]byte(b.text), &values); err != nil {
				t.Fatal(err)
			}
		}
	}
	config, err := json.Marshal(values.Config)
	if err != nil {
		t.Fatal(err)
	}
	brokers, err := json.Marshal(cluster.BrokersAt(kafka.SASLTLS))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(
		`["kafka-0.example.com:9093","kafka-1.example.com:9093"]`, string(brokers), "/etc/kubecdc/kafka/ca.crt", cluster.Certificates().CA,
		"/etc/kubecdc/kafka/password", w.path("password"), "{\"cluster\"", "{\"state\":{\"dir\":\"state\"},\"listen\":\"127.0.0.1:0\",\"cluster\"",
	).Replace(string(config))
	w.write("config.yaml", text)
	w.start()

	login, program := "", ""
	for _, b := range blocks(t, reading, all[reading]) {
		switch {
		case b.is("python") && strings.HasPrefix(b.text, "login ="):
			login = strings.Replace(b.text, "ca.crt", cluster.Certificates().CA, 1)
		case b.is("python") && program == "":
			program = strings.NewReplacer("k8s.prod-eu1.configmaps", "k8s.prod-eu1.deployments.apps", `isolation_level="read_committed")`, `isolation_level="read_committed", **login)`,
				"kafka:9092", cluster.BrokersAt(kafka.SASLTLS)[0]).Replace(b.text)
		}
	}
	got, said := readsOn(t, []string{"kafka-python[zstd]==" + versions["kafka-python[zstd]"]}, login+"\n"+program, 3)
	for _, want := range []string{"snapshot.begin /snapshot.begin ", "replaced shop/web 1 ", "snapshot.end /snapshot.end "} { // in six partitions
		if !strings.Contains(got, want) {
			t.Errorf("the table prints\n%s\nwithout %s\n%s", got, want, said)
		}
	}
}

// grant gives the rights of the page's commands.
func grant(t *testing.T, cluster *kafka.Cluster, commands string) {
	t.Helper()
	operations := map[string]kmsg.ACLOperation{
		"Write": kmsg.ACLOperationWrite, "Read": kmsg.ACLOperationRead, "DescribeConfigs": kmsg.ACLOperationDescribeConfigs, "Create": kmsg.ACLOperationCreate,
	}
	for command := range strings.SplitSeq(strings.ReplaceAll(commands, "\\\n", ""), "\n") {
		words, right := strings.Fields(command), kafka.ACL{Prefix: strings.Contains(command, "prefixed")}
		var granted []string
		for at := 0; at+1 < len(words); at++ {
			switch value := words[at+1]; words[at] {
			case "--allow-principal":
				right.User = strings.TrimPrefix(value, "User:")
			case "--operation":
				granted = append(granted, value)
			case "--topic":
				right.Type, right.Resource = kmsg.ACLResourceTypeTopic, value
			case "--transactional-id":
				right.Type, right.Resource = kmsg.ACLResourceTypeTransactionalId, value
			}
		}
		for _, name := range granted {
			if right.Operation = operations[name]; right.Operation == 0 {
				t.Fatalf("the page grants %q, which this test does not know", name)
			}
			cluster.AddACL(t, right)
		}
	}
}
