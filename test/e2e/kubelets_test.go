package e2e

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// kubelets are of many nodes: their hearts beat all the while, and now and then one is ready no more, or again.
type kubelets struct {
	*matters
	nodes, beats int
	ready        map[string]string
	want         map[string][]string // by node: what matters, in order
}

// work makes all changes, and says of each third of them when it has begun.
func (k *kubelets) work(ctx context.Context, thirds chan<- struct{}) error {
	defer close(thirds)
	k.ready, k.want = map[string]string{}, map[string][]string{}
	for beat := range k.beats {
		for node := range k.nodes {
			if err := k.change(ctx, node, beat); err != nil {
				return err
			}
		}
		if beat%(k.beats/3) == 1 {
			select {
			case thirds <- struct{}{}:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

// change makes the node, or changes its status: mostly nothing but when it was heard of last.
func (k *kubelets) change(ctx context.Context, number, beat int) error {
	name, nodes := fmt.Sprint("load-", number), k.client.Resource(core("nodes"))
	if beat == 0 {
		node := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": name, "labels": map[string]any{"team": "a"}}}}
		made, err := nodes.Create(ctx, node, metav1.CreateOptions{})
		if err == nil {
			k.want[name] = []string{made.GetResourceVersion()}
		}
		return err
	}
	ready := k.ready[name]
	if ready == "" || (7*beat+number)%5 == 0 {
		ready = map[string]string{"": "True", "True": "False", "False": "True"}[ready]
	}
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q,"lastHeartbeatTime":"2026-11-21T10:%02d:00Z"}]}}`, ready, beat)
	node, err := nodes.Patch(ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubelet"}, "status")
	if err == nil && ready != k.ready[name] {
		k.want[name], k.ready[name] = append(k.want[name], node.GetResourceVersion()), ready
	}
	return err
}

// arrive holds what each sink was told: every change that matters once and in order, each with what was told before it,
// and no heartbeat.
func (k *kubelets) arrive() {
	k.t.Helper()
	for _, sink := range k.sinks {
		for name, want := range k.want {
			sink.await(k.t, k.exporter, "the last change of "+name, func(e *event) bool { return e.Name == name && e.ResourceVersion == want[len(want)-1] })
		}
	}
	k.exporter.stop(k.t)
	for _, sink := range k.sinks {
		told := map[string][]string{}
		for _, e := range sink.all(k.t) {
			if !strings.HasPrefix(e.Name, "load-") {
				continue
			}
			if last := told[e.Name]; len(last) > 0 && !strings.Contains(e.Before, fmt.Sprintf(`"resourceVersion":%q`, last[len(last)-1])) {
				k.t.Errorf("sink %s: %s was told behind %s, and before is %s", sink.name, &e, last[len(last)-1], e.Before)
			}
			told[e.Name] = append(told[e.Name], e.ResourceVersion)
		}
		for name, want := range k.want {
			if got, want := strings.Join(told[name], " "), strings.Join(want, " "); got != want {
				k.t.Errorf("sink %s was told of %s the versions\n%s\nwant\n%s", sink.name, name, got, want)
			}
		}
	}
}

// underLoad kills the exporter while the hearts of many nodes beat.
func (m *matters) underLoad() {
	m.t.Helper()
	k := &kubelets{matters: m, nodes: 20, beats: 30}
	thirds, failed := make(chan struct{}), make(chan error, 1)
	go func() { failed <- k.work(m.t.Context(), thirds) }()
	for range thirds {
		m.exporter.process.Kill()
		m.exporter.start(m.t)
	}
	if err := <-failed; err != nil {
		m.t.Fatal(err)
	}
	k.arrive()
}
