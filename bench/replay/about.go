package replay

import (
	"encoding/json"
	"fmt"
	"net/http"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
)

// clusterUID is the uid of namespace kube-system.
func (w World) clusterUID() types.UID {
	return types.UID(fmt.Sprintf("%08x-2e4f-4a6b-8c7d-9e0f1a2b3c4d", 0x8a5b1c3d+w.Cluster))
}

// about answers what clients ask before they list or watch: who the server is and what it serves.
func (s *session) about(w http.ResponseWriter, request *http.Request, path string) {
	switch path {
	case watchesPath:
		writeJSON(w, http.StatusOK, s.count(0))
	case releasePath:
		s.release()
		writeJSON(w, http.StatusOK, true)
	case "/readyz":
		_, _ = w.Write([]byte("ok")) // the client may be gone
	case "/version":
		writeJSON(w, http.StatusOK, version.Info{Major: "1", Minor: "36", GitVersion: "v1.36.0-replay"})
	case "/api/v1/namespaces/kube-system":
		writeJSON(w, http.StatusOK, metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{Kind: "Namespace", APIVersion: "v1"},
			ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: s.world.clusterUID(), ResourceVersion: "3"},
		})
	case "/api":
		s.discover(w, request, "")
	case "/apis":
		s.discover(w, request, group)
	default:
		writeStatus(w, http.StatusNotFound, "there is no "+path)
	}
}

// discover answers with the group's resources, once to each client: they never change (KEP-3352).
func (s *session) discover(w http.ResponseWriter, request *http.Request, group string) {
	const tag = `"1"`
	w.Header().Set("ETag", tag)
	if request.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	served := apidiscoveryv2.APIVersionDiscovery{Version: "v1", Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
	for _, res := range s.resources {
		if res.group == group {
			served.Resources = append(served.Resources, apidiscoveryv2.APIResourceDiscovery{
				Resource: res.name, ResponseKind: &metav1.GroupVersionKind{Group: group, Version: "v1", Kind: res.kind},
				Scope: apidiscoveryv2.ScopeNamespace, Verbs: []string{"get", "list", "watch"},
			})
		}
	}
	list := apidiscoveryv2.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList"}}
	if len(served.Resources) > 0 {
		list.Items = append(list.Items, apidiscoveryv2.APIGroupDiscovery{
			ObjectMeta: metav1.ObjectMeta{Name: group}, Versions: []apidiscoveryv2.APIVersionDiscovery{served},
		})
	}
	w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	writeJSON(w, http.StatusOK, list)
}

func writeStatus(w http.ResponseWriter, code int, message string) {
	writeJSON(w, code, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Message: message,
	})
}

func writeJSON(w http.ResponseWriter, code int, value any) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value) // the client may be gone
}
