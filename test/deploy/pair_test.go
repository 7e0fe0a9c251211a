package deploy

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestI11TwoReplicasHaveNoVolume: the state of each is a cache that a lost node may take with it, and nothing that
// outlives a pod ties it to a node.
func TestI11TwoReplicasHaveNoVolume(t *testing.T) {
	objects := render(t, "x", twoReplicas)
	if slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "StatefulSet" }) {
		t.Error("there is a StatefulSet, too")
	}
	pod := into[appsv1.Deployment](t, find(t, objects, "Deployment")).Spec.Template.Spec
	for _, volume := range pod.Volumes {
		if volume.PersistentVolumeClaim != nil || (volume.Name == "state" && volume.EmptyDir == nil) {
			t.Errorf("volume %s is no cache: %+v", volume.Name, volume)
		}
	}
	if got := pod.Containers[0].Resources; got.Requests.StorageEphemeral().String() != "2Gi" || got.Requests.Memory().String() != "256Mi" || got.Limits.Memory().String() != "1Gi" {
		t.Errorf("the container asks for %+v", got)
	}
}

// TestTwoReplicasAreOnTwoNodes, unless somebody wants them elsewhere, and a drained node evicts one of them at a time.
func TestTwoReplicasAreOnTwoNodes(t *testing.T) {
	objects := render(t, "x", twoReplicas)
	set := into[appsv1.Deployment](t, find(t, objects, "Deployment")).Spec
	spread := set.Template.Spec.TopologySpreadConstraints
	if len(spread) != 2 || spread[0].TopologyKey != corev1.LabelHostname || spread[0].WhenUnsatisfiable != corev1.DoNotSchedule || spread[1].TopologyKey != corev1.LabelTopologyZone {
		t.Fatalf("spread over %+v", spread)
	}
	for _, constraint := range spread {
		for key, value := range constraint.LabelSelector.MatchLabels {
			if set.Template.Labels[key] != value {
				t.Errorf("%s: the pods have no label %s=%s", constraint.TopologyKey, key, value)
			}
		}
	}
	own := render(t, "x", twoReplicas+"topologySpreadConstraints: [{maxSkew: 3, topologyKey: rack, whenUnsatisfiable: ScheduleAnyway}]")
	if spread := into[appsv1.Deployment](t, find(t, own, "Deployment")).Spec.Template.Spec.TopologySpreadConstraints; len(spread) != 1 || spread[0].TopologyKey != "rack" {
		t.Errorf("wanted is one of the rack: %+v", spread)
	}
	most, _, err := unstructured.NestedInt64(find(t, objects, "PodDisruptionBudget").Object, "spec", "maxUnavailable")
	if err != nil || most != 1 {
		t.Errorf("%d may be away at once, %v", most, err)
	}
}

// TestAnUpdateTakesNoPodBeforeTheNextIsThere: two are ready all the time, so that a leader that stops has a successor.
func TestAnUpdateTakesNoPodBeforeTheNextIsThere(t *testing.T) {
	set := into[appsv1.Deployment](t, find(t, render(t, "x", twoReplicas), "Deployment")).Spec
	if rolling := set.Strategy.RollingUpdate; *set.Replicas != 2 || rolling == nil || rolling.MaxUnavailable.String() != "0" || rolling.MaxSurge.String() != "1" {
		t.Errorf("%d replicas, %+v", *set.Replicas, set.Strategy)
	}
}
