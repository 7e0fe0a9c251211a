package replay

import (
	"encoding/json"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
)

// The paths that only a benchmark asks.
const (
	countsPath  = "/replay/counts"
	releasePath = "/replay/release"
)

// clusterUID is the uid of namespace kube-system, in all worlds.
const clusterUID = "8a5b1c3d-2e4f-4a6b-8c7d-9e0f1a2b3c4d"

// about answers what clients ask before they list or watch: who the server is and what it serves.
func (s *session) about(w http.ResponseWriter, path string) {
	switch path {
	case countsPath:
		writeJSON(w, http.StatusOK, s.countsNow())
	case releasePath:
		s.release()
	case "/readyz":
		_, _ = w.Write([]byte("ok")) // the client may be gone
	case "/version":
		writeJSON(w, http.StatusOK, version.Info{Major: "1", Minor: "36", GitVersion: "v1.36.0-replay"})
	case "/api/v1/namespaces/kube-system":
		writeJSON(w, http.StatusOK, metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{Kind: "Namespace", APIVersion: "v1"},
			ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: clusterUID, ResourceVersion: "3"},
		})
	case "/api":
		writeJSON(w, http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case "/apis":
		writeJSON(w, http.StatusOK, s.groups())
	case "/api/v1":
		writeJSON(w, http.StatusOK, s.served(""))
	case "/apis/" + group + "/v1":
		writeJSON(w, http.StatusOK, s.served(group))
	default:
		writeStatus(w, http.StatusNotFound, "there is no "+path)
	}
}

func (s *session) groups() metav1.APIGroupList {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}
	if s.world.Kinds > 0 {
		only := metav1.GroupVersionForDiscovery{GroupVersion: group + "/v1", Version: "v1"}
		list.Groups = append(list.Groups, metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{only}, PreferredVersion: only})
	}
	return list
}

// served lists the group's resources.
func (s *session) served(group string) metav1.APIResourceList {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "v1"}
	if group != "" {
		list.GroupVersion = group + "/v1"
	}
	for _, res := range s.resources {
		if res.group == group {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: res.name, Kind: res.kind, Namespaced: true, Verbs: metav1.Verbs{"get", "list", "watch"},
			})
		}
	}
	return list
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
