package deploy

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// named is the only object of the kind with the name; nil is none.
func named(objects []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	at := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind && o.GetName() == name })
	if at < 0 {
		return nil
	}
	return objects[at]
}

// podOf is what the exporter's workload runs.
func podOf(t *testing.T, objects []*unstructured.Unstructured) *corev1.PodTemplateSpec {
	t.Helper()
	template, _, err := unstructured.NestedMap(workload(t, objects).Object, "spec", "template")
	if err != nil {
		t.Fatal(err)
	}
	return into[corev1.PodTemplateSpec](t, &unstructured.Unstructured{Object: template})
}

// auditPort is the container's port for the webhook; 0 is none.
func auditPort(pod *corev1.PodTemplateSpec) int32 {
	for _, port := range pod.Spec.Containers[0].Ports {
		if port.Name == "audit" {
			return port.ContainerPort
		}
	}
	return 0
}

// TestTheAuditWebhookReachesThePod: the Service, the port and the policy are for the address of the configuration, and
// whoever may read metrics may not send for that reason.
func TestTheAuditWebhookReachesThePod(t *testing.T) {
	objects := render(t, "x", audited)
	pod := podOf(t, objects)
	if got := auditPort(pod); got != 9443 {
		t.Errorf("the container's port is %d", got)
	}
	service := into[corev1.Service](t, named(objects, "Service", "kubecdc-audit"))
	if ports := service.Spec.Ports; len(ports) != 1 || ports[0].Port != 443 || ports[0].TargetPort.String() != "audit" || service.Annotations["a"] != "b" {
		t.Errorf("the Service is %+v", service)
	}
	for key, value := range service.Spec.Selector {
		if pod.Labels[key] != value {
			t.Errorf("the Service wants pods with %s=%s, which have %q", key, value, pod.Labels[key])
		}
	}
	rules := into[networkingv1.NetworkPolicy](t, find(t, objects, "NetworkPolicy")).Spec.Ingress
	if len(rules) != 2 || rules[0].Ports[0].Port.String() != "http" || rules[0].From[0].IPBlock != nil ||
		rules[1].Ports[0].Port.String() != "audit" || len(rules[1].From) != 1 || rules[1].From[0].IPBlock.CIDR != "10.1.0.0/24" {
		t.Errorf("the policy lets in %+v", rules)
	}
	metrics := into[corev1.Service](t, named(objects, "Service", "kubecdc"))
	if ports := metrics.Spec.Ports; len(ports) != 1 || ports[0].TargetPort.String() != "http" {
		t.Errorf("the Service of the metrics has the ports %+v", ports)
	}
}

// TestTheAuditsCertificatesAreMounted: the configuration names files of the Secret, which is mounted as a whole, since
// the kubelet renews no single file, and does not start the pod anew.
func TestTheAuditsCertificatesAreMounted(t *testing.T) {
	objects := render(t, "x", audited)
	pod := podOf(t, objects).Spec
	mounts := pod.Containers[0].VolumeMounts
	at := slices.IndexFunc(mounts, func(m corev1.VolumeMount) bool { return m.Name == "audit" })
	if at < 0 || !mounts[at].ReadOnly || mounts[at].SubPath != "" {
		t.Fatalf("mounted is %+v", mounts)
	}
	volume := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == "audit" })
	if volume < 0 || pod.Volumes[volume].Secret.SecretName != "kubecdc-audit" || pod.Volumes[volume].Secret.Items != nil {
		t.Fatalf("volumes are %+v", pod.Volumes)
	}
	shown := parsed(t, configOf(t, objects))
	for _, file := range []string{"tls.crt", "tls.key", "ca.crt"} {
		if want := `"` + mounts[at].MountPath + "/" + file + `"`; !strings.Contains(shown, want) {
			t.Errorf("the configuration does not name %s:\n%s", want, shown)
		}
	}
}

// TestTheConfigurationsOwnCertificatesWin, of files, and no Secret is mounted beside them.
func TestTheConfigurationsOwnCertificatesWin(t *testing.T) {
	objects := render(t, "x", auditedPair)
	if shown := parsed(t, configOf(t, objects)); !strings.Contains(shown, `"/etc/pki/audit/b.crt"`) || strings.Contains(shown, "/etc/kubecdc/audit") {
		t.Errorf("the configuration is\n%s", shown)
	}
	for _, volume := range podOf(t, objects).Spec.Volumes {
		if volume.Name == "audit" {
			t.Errorf("mounted is %+v, too", volume)
		}
	}
	both := render(t, "x", strings.Replace(audited, `listen: ":9443"`, `listen: ":9443", clientCA: /etc/pki/ca.crt`, 1))
	if shown := parsed(t, configOf(t, both)); !strings.Contains(shown, `"/etc/pki/ca.crt"`) || !strings.Contains(shown, `"/etc/kubecdc/audit/tls.crt"`) {
		t.Errorf("with a clientCA of its own, the configuration is\n%s", shown)
	}
}

// TestI11TheWebhookFindsWhoeverLeads: a standby refuses a batch, so the next attempt must be able to go elsewhere, and
// a leader with a stopped sink, which is not ready, must be found.
func TestI11TheWebhookFindsWhoeverLeads(t *testing.T) {
	service := into[corev1.Service](t, named(render(t, "x", auditedPair), "Service", "kubecdc-audit")).Spec
	if service.SessionAffinity != corev1.ServiceAffinityNone || !service.PublishNotReadyAddresses || service.ClusterIP != "10.96.0.90" {
		t.Errorf("the Service is %+v", service)
	}
}

// TestWithoutAnAuditNothingIsOpened for it.
func TestWithoutAnAuditNothingIsOpened(t *testing.T) {
	objects := render(t, "x", "config: {audit: null}\nnetworkPolicy: {enabled: true}")
	if named(objects, "Service", "kubecdc-audit") != nil {
		t.Error("there is a Service")
	}
	if got := auditPort(podOf(t, objects)); got != 0 {
		t.Errorf("the container has port %d", got)
	}
	if rules := into[networkingv1.NetworkPolicy](t, find(t, objects, "NetworkPolicy")).Spec.Ingress; len(rules) != 1 {
		t.Errorf("the policy lets in %+v", rules)
	}
}
