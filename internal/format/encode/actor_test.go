package encode

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/audit"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// actor is what is told of an audit event of an update of deployment web at a version.
func actor(t *testing.T) *change.Record {
	t.Helper()
	e, err := audit.Parse([]byte(`{"level":"RequestResponse","auditID":"8f4be5a6-5b1e-4b47-9f3b-0f4b9c1d2e3f","stage":"ResponseComplete",
		"requestURI":"/apis/apps/v1/namespaces/shop/deployments/web?fieldManager=kubectl-edit","verb":"update",
		"user":{"username":"jane@example.org","groups":["ops","system:authenticated"]},"impersonatedUser":{"username":"deployer","groups":["system:authenticated"]},
		"sourceIPs":["10.1.2.3"],"userAgent":"kubectl/v1.36.3 (linux/amd64) \u003cé\u003e",
		"objectRef":{"resource":"deployments","namespace":"shop","name":"web","apiGroup":"apps","apiVersion":"v1"},"responseStatus":{"code":200},
		"requestObject":{"metadata":{"resourceVersion":"123450"}},"responseObject":{"metadata":{"name":"web","namespace":"shop","uid":"u-1","resourceVersion":"123456"}},
		"requestReceivedTimestamp":"2026-11-21T02:33:14.100000Z","stageTimestamp":"2026-11-21T02:33:14.120000Z",
		"annotations":{"authorization.k8s.io/decision":"allow","authorization.k8s.io/reason":"RBAC: allowed by ClusterRoleBinding \"ops\""}}`))
	must(t, err)
	answers, outcome := audit.Judge(e)
	if outcome != audit.Told {
		t.Fatalf("the event is %s", outcome)
	}
	rec, fits := e.Record(answers[0], audit.Object{Stream: deployments(), ClusterUID: clusterUID}, "lake")
	if !fits {
		t.Fatal("the event is too large")
	}
	rec.Received = received()
	return rec
}

// I8: the record names the change by the id that the change itself has.
func TestI8AnActorNamesItsChange(t *testing.T) {
	encoder := NewEncoder(Options{Cluster: "prod-eu1", ClusterUID: clusterUID})
	message := encoded(encoder, nil, actor(t))[0]
	got := string(message.Value) + "\n"
	same(t, filepath.Join("testdata", "cloudevents", "user.json"), got)
	for _, v := range validators(t) {
		if err := v.Message(consumed(outlet{format: FormatCloudEvents}, message)); err != nil {
			t.Error(err)
		}
	}
	if id := records()["updated"].ID(clusterUID).String(); !strings.Contains(got, `"change":"`+id+`"`) {
		t.Errorf("%s does not name %s", got, id)
	}
}

// A compacted topic keeps all actors of an object, whatever the key of its changes.
func TestActorsHaveKeysOfTheirOwn(t *testing.T) {
	key, err := NewText("{namespace}/{name}", "prod-eu1")
	must(t, err)
	for _, encoder := range []*Encoder{
		NewEncoder(Options{ClusterUID: clusterUID, Transport: Kafka}), NewEncoder(Options{ClusterUID: clusterUID, Transport: Kafka, Key: key}),
	} {
		if got := string(encoded(encoder, nil, actor(t))[0].Key); got != actor(t).UID+"/shop/web" {
			t.Errorf("the key is %s", got)
		}
	}
}

func TestOtherFormatsRefuseActors(t *testing.T) {
	for _, o := range outlets() {
		_, err := formatEncoder(o.format, o.kind).Encode(t.Context(), nil, actor(t))
		var rejected *sink.RejectedError
		if errors.As(err, &rejected) == (o.format == FormatCloudEvents) {
			t.Errorf("%s on %s: %v", o.format, o.transport, err)
		}
	}
}
