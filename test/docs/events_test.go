package docs

import (
	"bytes"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// narrow is a stream's largest message before its limit is raised.
const narrow = 20_000

// events are what happens to the world before some commands.
func (w *world) events() map[string]func() {
	return map[string]func(){
		"an object is too large":  w.refuse,
		"the limit is raised":     w.widen,
		"the exporter is stopped": w.stop,
		"the exporter runs":       w.start,
		"the sink differs":        w.plant,
		"users change objects":    w.audit,
		"the lake has signals":    w.hearSignals,

		"a deployment is ready and is scaled": w.scale,
	}
}

// resize changes the largest message of the stream; -1 is any.
func (w *world) resize(size int32) {
	w.t.Helper()
	stream, err := w.stream.Stream(w.t.Context(), "K8S")
	if err != nil {
		w.t.Fatal(err)
	}
	config := stream.CachedInfo().Config
	config.MaxMsgSize = size
	if _, err := w.stream.UpdateStream(w.t.Context(), config); err != nil {
		w.t.Fatal(err)
	}
}

// refuse leaves a dead letter.
func (w *world) refuse() {
	w.t.Helper()
	w.resize(narrow)
	w.put("dump", strings.Repeat("x", 2*narrow))
	w.await("a dead letter is there", w.hasLetter)
}

// hasLetter says whether a dead letter is there: its file, and not only the directory of those that are claimed beside
// it.
func (w *world) hasLetter() bool {
	letters, err := filepath.Glob(w.path("state/deadletters/bus/*.letter"))
	return err == nil && len(letters) > 0
}

// widen lets the stream take what it refused, which it has done before.
func (w *world) widen() {
	w.t.Helper()
	if !w.hasLetter() {
		w.refuse()
	}
	w.resize(-1)
}

// plant stops the exporter and puts an object into the stream that the cluster does not have.
func (w *world) plant() {
	w.t.Helper()
	w.stop()
	stream, err := w.stream.Stream(w.t.Context(), "K8S")
	if err != nil {
		w.t.Fatal(err)
	}
	message, err := stream.GetLastMsgForSubject(w.t.Context(), "k8s.dev.core.configmaps.shop.settings-1")
	if err != nil {
		w.t.Fatal(err)
	}
	forged := nats.NewMsg("k8s.dev.core.configmaps.shop.ghost")
	forged.Data = bytes.ReplaceAll(message.Data, []byte("/settings-1/"), []byte("/ghost/"))
	for name, values := range message.Header {
		if strings.HasPrefix(name, "kubecdc") {
			forged.Header[name] = []string{strings.ReplaceAll(values[0], "/settings-1/", "/ghost/")}
		}
	}
	if _, err := w.stream.PublishMsg(w.t.Context(), forged); err != nil {
		w.t.Fatal(err)
	}
}

// scale lets a controller report, and then somebody change what should be.
func (w *world) scale() {
	w.t.Helper()
	deployments := w.client.AppsV1().Deployments("shop")
	web, err := deployments.Get(w.t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	web.Status.Replicas, web.Status.ReadyReplicas = web.Status.Replicas+1, 1
	if web, err = deployments.UpdateStatus(w.t.Context(), web, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	*web.Spec.Replicas++
	if _, err := deployments.Update(w.t.Context(), web, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}
