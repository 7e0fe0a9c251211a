package election

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// OtherLeadsError is the cause with which a term ends.
type OtherLeadsError struct {
	Place  Place
	Holder string
}

func (e *OtherLeadsError) Error() string {
	return fmt.Sprintf("%s leads now, as the Lease %s says", Host(e.Holder), e.Place)
}

// RightsError says that the member may not use the Lease.
type RightsError struct {
	Place Place
	Err   error
}

func (e *RightsError) Error() string {
	if apierrors.IsNotFound(e.Err) {
		return fmt.Sprintf("ha.lease: make the Lease %s: %v: create the namespace, or name another one", e.Place, e.Err)
	}
	return fmt.Sprintf("ha.lease: use the Lease %s: %v: bind a role with the verbs get, create and update on leases of group coordination.k8s.io "+
		"in namespace %s to the exporter's user, or name another Lease", e.Place, e.Err, e.Place.Namespace)
}
func (e *RightsError) Unwrap() error { return e.Err }

// missingRights is the error if only a person can mend it.
func missingRights(place Place, err error) error {
	switch {
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return &RightsError{place, err}
	case apierrors.IsNotFound(err) && isOf(err, "namespaces"):
		return &RightsError{place, err}
	}
	return nil
}

// isOf says whether the error is about an object of the resource.
func isOf(err error, resource string) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind == resource
}

// ForeignError says that exporters of another release hold the Lease.
type ForeignError struct {
	Place  Place
	Holder string
	Err    error
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("ha.lease: %s holds the Lease %s for other sinks: %v: give each release a Lease of its own with ha.lease, and a log of its own "+
		"with state.log.name; if it is the same release, with other sinks altogether, stop its exporters first", Host(e.Holder), e.Place, e.Err)
}
func (e *ForeignError) Unwrap() error { return e.Err }

// Self is a member's name in the Lease: its host, for people, and what tells it from other members there.
func Self(host, member string) string { return host + "_" + member }

// Host is the host in a member's name.
func Host(self string) string {
	if at := strings.LastIndexByte(self, '_'); at > 0 {
		return self[:at]
	}
	return self
}
