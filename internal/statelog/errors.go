package statelog

import (
	"errors"
	"fmt"
)

// ForeignError says that a log is another cluster's, or another exporter's of the same cluster.
type ForeignError struct{ Have, Want Identity }

func (e *ForeignError) Error() string {
	if e.Have.Cluster != e.Want.Cluster {
		return fmt.Sprintf("it is of cluster %q (uid %s), and ours is %q: give each cluster a log of its own with state.log.name, or correct the key cluster",
			e.Have.Cluster, e.Have.UID, e.Want.Cluster)
	}
	return fmt.Sprintf("it is of another exporter's state (%s, ours is %s): give each release a log of its own with state.log.name; "+
		"to go on from that log instead, remove the state of this exporter with exporter checkpoint reset", e.Have.Instance, e.Want.Instance)
}

// LeaseError says that exporters write a log that share another Lease: two releases would fence each other in turns.
type LeaseError struct{ Have, Want string }

func (e *LeaseError) Error() string {
	return fmt.Sprintf("exporters that share the Lease %s write to it, and this one has %s: give each release a log of its own with state.log.name, "+
		"or let all of one release share a Lease with ha.lease; if the Lease has been renamed, stop those with the old one first", e.Have, e.Want)
}

// StrangeError says that what is configured as a log of the state holds something else.
type StrangeError struct{ Place string }

func (e *StrangeError) Error() string {
	return e.Place + " is no message of a log of the state: name another topic or bucket with state.log"
}

// IsForGood says whether the log is not ours to write, whatever is tried.
func IsForGood(err error) bool {
	var foreign *ForeignError
	var newer *NewerError
	var strange *StrangeError
	var leased *LeaseError
	return errors.As(err, &leased) || errors.As(err, &foreign) || errors.As(err, &newer) || errors.As(err, &strange)
}
