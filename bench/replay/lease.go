package replay

import (
	"encoding/json"
	"net/http"
	"strconv"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// leasesPath begins the path of a Lease. There is one in each world, whatever its name.
const leasesPath = "/apis/coordination.k8s.io/v1/namespaces/"

// serveLease answers who reads, makes or updates the Lease. An update of another version than the newest is a conflict.
func (s *session) serveLease(w http.ResponseWriter, r *http.Request) {
	var sent coordinationv1.Lease
	if r.Method != http.MethodGet {
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			writeStatus(w, http.StatusBadRequest, err.Error())
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.Method == http.MethodGet && s.lease == nil:
		writeStatus(w, http.StatusNotFound, "there is no Lease yet")
		return
	case r.Method == http.MethodPost && s.lease != nil:
		writeStatus(w, http.StatusConflict, "the Lease exists already")
		return
	case r.Method == http.MethodPut && (s.lease == nil || sent.ResourceVersion != s.lease.ResourceVersion):
		writeStatus(w, http.StatusConflict, "the Lease has changed")
		return
	case r.Method != http.MethodGet:
		version := 0
		if s.lease != nil {
			version, _ = strconv.Atoi(s.lease.ResourceVersion) // it is ours
		}
		sent.ResourceVersion = strconv.Itoa(version + 1)
		s.lease = &sent
	}
	writeJSON(w, http.StatusOK, s.lease)
}
