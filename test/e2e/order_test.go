package e2e

import (
	"encoding/base64"
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
)

// TestContinueTokensNameTheRange: kube-apiserver's token says after which key the list goes on, which proves the order
// of the list to the exporter: of all namespaces, of one, of custom resources, and at an exact version.
func TestContinueTokensNameTheRange(t *testing.T) {
	t.Parallel()
	r := newWorld(t, world{})
	r.writer.populate(t)
	pages := map[string]dynamic.ResourceInterface{
		"all namespaces":   r.client.Resource(core("configmaps")),
		"one namespace":    r.client.Resource(core("configmaps")).Namespace("shop"),
		"custom resources": r.client.Resource(widgets()),
		"no namespace":     r.client.Resource(rbac("clusterroles")),
	}
	for name, client := range pages {
		options := metav1.ListOptions{Limit: 2, ResourceVersion: r.version(), ResourceVersionMatch: metav1.ResourceVersionMatchExact}
		list, err := client.List(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		text, err := base64.RawURLEncoding.DecodeString(list.GetContinue())
		if err != nil {
			t.Fatal(err)
		}
		var token struct{ V, Start string }
		if err := json.Unmarshal(text, &token); err != nil {
			t.Fatal(err)
		}
		last := list.Items[len(list.Items)-1]
		want := "/" + joined(last.GetNamespace(), last.GetName()) + "\x00"
		if name == "one namespace" {
			want = "/" + last.GetName() + "\x00"
		}
		if token.V != "meta.k8s.io/v1" || token.Start != want {
			t.Errorf("%s: the token is %q, want it to go on at %q", name, text, want)
		}
	}
}
