package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubecdc/kubecdc/test/deploy/chart"
	"github.com/kubecdc/kubecdc/test/deploy/generated"
)

// namespacesOnly needs no role that counts in all namespaces, but for the cluster's identity.
const namespacesOnly = `
config:
  resources:
    - {resource: pods, namespaces: [shop, billing]}
    - {resource: secrets, namespaces: [shop], labelSelector: "app=web"}
    - {resource: certificates.cert-manager.io, namespaces: [billing]}
  sinks: [{name: bus, nats: {url: "nats://nats.nats:4222", user: kubecdc, password: "${NATS_PASSWORD}"}}]
secretEnv:
  NATS_PASSWORD: {name: nats, key: password}
`

const everyResource = `
config: {resources: ["*", secrets]}
rbac: {wildcard: true}
`

// everyOption sets each value to something that is not its default.
const everyOption = `
nameOverride: cdc
image: {repository: registry.example.com/cdc, tag: v9, digest: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", pullPolicy: Always}
imagePullSecrets: [{name: registry}]
config:
  cluster: prod-eu1
  resources: [po, "*.apps", deployments.v1.apps, events, {resource: ing, namespaces: [shop]}]
  sinks:
    - name: lake
      kafka: {brokers: ["kafka:9092"], tls: {ca: /etc/kubecdc/ca/ca.crt}, sasl: {mechanism: PLAIN, user: me, passwordFile: /etc/kubecdc/kafka/password}}
      queue: {records: 1000000}
  state: {dir: /state}
  listen: "0.0.0.0:9090"
files:
  - {path: /etc/kubecdc/kafka, secret: kafka}
  - {path: /etc/kubecdc/ca, configMap: ca}
serviceAccount: {name: reader, annotations: {eks.amazonaws.com/role-arn: "arn:aws:iam::1:role/cdc"}}
persistence: {size: 10Gi, storageClassName: fast, accessMode: ReadWriteOncePod}
env: [{name: HTTPS_PROXY, value: "http://proxy:3128"}, {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]
extraArgs: [--log-level=debug]
restartOnSecrets: false
deadNodeSeconds: 5
topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {a: b}}}]
test: {image: "registry.example.com/busybox:1"}
resources: {requests: {cpu: 2, memory: 1Gi}, limits: {cpu: "2", memory: 2Gi}}
terminationGracePeriodSeconds: 60
podSecurity: {runAsUser: 1000, runAsGroup: 1000, fsGroup: 1000}
podDisruptionBudget: {maxUnavailable: 0}
service: {port: 80, annotations: {a: b}}
serviceMonitor: {enabled: true, labels: {release: prometheus}}
prometheusRule: {enabled: true, labels: {release: prometheus}}
dashboard: {enabled: true, annotations: {grafana_folder: cdc}}
networkPolicy:
  enabled: true
  from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]
  egress: [{to: [{ipBlock: {cidr: 10.0.0.0/8}}], ports: [{port: 443, protocol: TCP}]}]
podLabels: {team: data}
podAnnotations: {note: "1"}
nodeSelector: {kubernetes.io/os: linux}
tolerations: [{key: dedicated, operator: Exists}]
affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: Exists}]}]}}}
priorityClassName: system-cluster-critical
extraVolumes: [{name: out, emptyDir: {}}]
extraVolumeMounts: [{name: out, mountPath: /out}]
`

// twoReplicas is a leader and a standby, which share nothing but the lease and the log of the state.
const twoReplicas = `
replicas: 2
config:
  sinks:
    - {name: bus, nats: {url: "nats://nats.nats:4222"}, queue: {full: spool, spool: 1Gi}}
    - {name: lake, kafka: {brokers: ["kafka:9092"]}}
  state: {log: {sink: bus}}
resources: {limits: {memory: 1Gi}}
`

// ownClaim uses a volume that somebody else made, and has Kubernetes' own patience with dead nodes.
const ownClaim = `
persistence: {existingClaim: mine}
deadNodeSeconds: null
config: {sinks: [{name: out, file: {path: /var/lib/kubecdc/out.ndjson}}]}
`

// audited receives the audit webhook at a fixed address, with the certificates of a Secret.
const audited = `
config:
  audit: {listen: ":9443"}
  sinks: [{name: bus, actors: true, nats: {url: "nats://nats.nats:4222"}}]
audit: {secret: kubecdc-audit, port: 443, annotations: {a: b}}
networkPolicy:
  enabled: true
  from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]
  auditFrom: [{ipBlock: {cidr: 10.1.0.0/24}}]
`

// auditedPair is a leader and a standby, of which either may get the webhook's requests. Its certificates are named by
// the configuration.
const auditedPair = `
replicas: 2
config:
  audit: {listen: "0.0.0.0:9443", tls: {cert: /etc/pki/audit/a.crt, key: /etc/pki/audit/a.key}, clientCA: /etc/pki/audit/b.crt}
  sinks: [{name: bus, actors: true, nats: {url: "nats://nats.nats:4222"}}]
  state: {log: {sink: bus}}
files: [{path: /etc/pki/audit, secret: pki}]
audit: {clusterIP: 10.96.0.90}
`

// fleetPair follows two clusters, whose kubeconfigs are in one Secret.
const fleetPair = `
replicas: 2
config:
  clusters:
    - {name: eu1, kubeconfig: /etc/kubecdc/clusters/eu1}
    - {name: us1, kubeconfig: /etc/kubecdc/clusters/us1}
    - {name: us2, secret: default/us2}
    - {name: us3, secret: default/us3}
  sinks: [{name: bus, nats: {url: "nats://nats.nats:4222"}}]
  state: {log: {sink: bus}}
files: [{path: /etc/kubecdc/clusters, secret: fleet}]
`

// tasksOfThree are four tasks of three exporters.
const tasksOfThree = `
replicas: 3
config:
  tasks: 4
  resources: [pods, services, configmaps, deployments.apps, {resource: events, task: 4}]
  sinks:
    - {name: bus, nats: {url: "nats://nats.nats:4222", stream: "K8S_{cluster}_{task}", subject: "k8s.{cluster}.{task}.{group}.{resource}.{namespace}.{name}"}}
  state: {log: {sink: bus}}
`

func valueSets() map[string]string {
	return map[string]string{
		"several clusters": fleetPair, "several tasks": tasksOfThree,
		"own claim": ownClaim, "defaults": "", "namespaces": namespacesOnly, "wildcard": everyResource, "every option": everyOption,
		"two replicas": twoReplicas, "audited": audited, "two replicas, audited": auditedPair,
	}
}

// TestTheValuesOfThePagesRender with all that the chart checks, such as that the spool fits on the volume.
func TestTheValuesOfThePagesRender(t *testing.T) {
	names, err := filepath.Glob(root + "/docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	rendered := 0
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("(?s)<!-- file: \\S+\\.yaml -->\n```yaml\n(.*?\n)```").FindAllSubmatch(text, -1) {
			if regexp.MustCompile(`(?m)^config:$`).Match(m[1]) {
				rendered++
				workload(t, render(t, "kubecdc", string(m[1])))
			}
		}
	}
	if rendered < 3 {
		t.Errorf("the pages have %d values of the chart", rendered)
	}
}

// render is the release "kubecdc" with the values.
func render(t *testing.T, namespace, values string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := chart.Render(release(namespace, values))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func release(namespace, values string) chart.Release {
	return chart.Release{Dir: root + "/" + generated.Chart, Name: "kubecdc", Namespace: namespace, Values: values, Cluster: "test"}
}

// find is the only object of the kind.
func find(t *testing.T, objects []*unstructured.Unstructured, kind string) *unstructured.Unstructured {
	t.Helper()
	var found []*unstructured.Unstructured
	for _, object := range objects {
		if object.GetKind() == kind {
			found = append(found, object)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d objects of kind %s", len(found), kind)
	}
	return found[0]
}

// workload is the StatefulSet or the Deployment of the exporter.
func workload(t *testing.T, objects []*unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	for _, object := range objects {
		if kind := object.GetKind(); kind == "StatefulSet" || kind == "Deployment" {
			return find(t, objects, kind)
		}
	}
	t.Fatal("nothing runs the exporter")
	return nil
}

// configOf is the exporter's configuration in its ConfigMap.
func configOf(t *testing.T, objects []*unstructured.Unstructured) string {
	t.Helper()
	for _, object := range objects {
		text, found, err := unstructured.NestedString(object.Object, "data", "config.yaml")
		if err == nil && found && object.GetKind() == "ConfigMap" {
			return text
		}
	}
	t.Fatal("no ConfigMap has config.yaml")
	return ""
}
