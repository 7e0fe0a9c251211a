package replay

import (
	"encoding/json"
	"net/http"
	"path"
	"slices"
	"strconv"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// leasesPath begins the path of a Lease.
const leasesPath = "/apis/coordination.k8s.io/v1/namespaces/"

// serveLease answers who reads, lists, makes, updates or deletes Leases. An update of another version than the newest
// is a conflict.
func (s *session) serveLease(w http.ResponseWriter, r *http.Request) {
	var sent coordinationv1.Lease
	if r.Method == http.MethodPost || r.Method == http.MethodPut {
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			writeStatus(w, http.StatusBadRequest, err.Error())
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	name := path.Base(r.URL.Path)
	if r.Method == http.MethodGet && name == "leases" {
		writeJSON(w, http.StatusOK, s.leases)
		return
	}
	if r.Method == http.MethodPost {
		name = sent.Name
	}
	at := slices.IndexFunc(s.leases.Items, func(l coordinationv1.Lease) bool { return l.Name == name })
	switch {
	case r.Method == http.MethodPost && at >= 0:
		writeStatus(w, http.StatusConflict, "the Lease exists already")
		return
	case r.Method == http.MethodPost:
		at, s.leases.Items = len(s.leases.Items), append(s.leases.Items, sent)
	case at < 0:
		writeStatus(w, http.StatusNotFound, "there is no such Lease")
		return
	case r.Method == http.MethodDelete:
		s.leases.Items = slices.Delete(s.leases.Items, at, at+1)
		writeStatus(w, http.StatusOK, "it is gone")
		return
	case r.Method == http.MethodPut && sent.ResourceVersion != s.leases.Items[at].ResourceVersion:
		writeStatus(w, http.StatusConflict, "the Lease has changed")
		return
	}
	if r.Method != http.MethodGet {
		s.written++
		sent.ResourceVersion = strconv.Itoa(s.written)
		s.leases.Items[at] = sent
	}
	writeJSON(w, http.StatusOK, s.leases.Items[at])
}
