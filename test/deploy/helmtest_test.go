package deploy

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

func into[T any](t *testing.T, object *unstructured.Unstructured) *T {
	t.Helper()
	made := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, made, true); err != nil {
		t.Fatal(err)
	}
	return made
}

// serviceOf stands for the rendered Service: under its name and port, and no other, it leads to the exporter.
func serviceOf(t *testing.T, i *installed, x *exporter) string {
	t.Helper()
	service := into[corev1.Service](t, find(t, i.objects, "Service"))
	host := fmt.Sprintf("%s.%s:%d", service.Name, service.Namespace, service.Spec.Ports[0].Port)
	forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: x.address()})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != host {
			http.Error(w, "no such host", http.StatusBadGateway)
			return
		}
		r.URL.Scheme, r.URL.Host = "", ""
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestHelmTestAsksWhetherTheExporterIsReady: the command of the rendered pod, beside a running exporter and after it.
func TestHelmTestAsksWhetherTheExporterIsReady(t *testing.T) {
	if _, err := exec.LookPath("wget"); err != nil {
		t.Skip("the pod of helm test calls wget, which is not here: install the package wget")
	}
	i := install(t, "[configmaps]")
	x := start(t, "-f", i.config, "--kubeconfig", i.kubeconfig)
	service := serviceOf(t, i, x)
	wanted := into[corev1.Pod](t, find(t, i.objects, "Pod")).Spec.Containers[0].Command
	test := func() (output string, passes bool) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, wanted[0], wanted[1:]...)
		cmd.Env = append(os.Environ(), "http_proxy="+service, "no_proxy=")
		text, err := cmd.CombinedOutput()
		return string(text), err == nil
	}
	var output string
	eventually(t, "helm test passes", func() (passes bool) {
		output, passes = test()
		return passes && strings.Contains(output, "[+]stream configmaps: watching\n")
	})
	if !strings.Contains(output, "[+]sink out: open\n") {
		t.Errorf("it says nothing of the sink:\n%s", output)
	}
	x.stop()
	if output, passes := test(); passes {
		t.Errorf("it passes without an exporter:\n%s", output)
	}
}
