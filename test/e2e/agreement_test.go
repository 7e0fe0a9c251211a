package e2e

import (
	"cmp"
	"fmt"
	"slices"
)

// disagreement is what one sink has of the watch and another has not, after what a reconcile covers in either.
func disagreement(a, b *judge) []string {
	var found []string
	for resource := range a.courses {
		after := max(a.course(resource).newest(), b.course(resource).newest())
		one, other := a.watched(resource, after), b.watched(resource, after)
		for i := range max(len(one), len(other)) {
			if i >= len(one) || i >= len(other) || one[i] != other[i] {
				found = append(found, fmt.Sprintf("%s: from record %d of the watch after %d on: %s has %.3q, %s has %.3q", resource, i, after,
					a.sink, one[min(i, len(one)):], b.sink, other[min(i, len(other)):]))
				break
			}
		}
	}
	return found
}

// watched is the ids of the watch's records after the version, in the order of their versions, which is the sink's.
func (j *judge) watched(resource string, after uint64) []string {
	var records []told
	for _, events := range j.objects {
		for _, e := range events {
			if e.kind() == resource && e.Snapshot == "" && e.version() > after {
				records = append(records, e)
			}
		}
	}
	slices.SortFunc(records, func(a, b told) int {
		return cmp.Or(cmp.Compare(a.version(), b.version()), cmp.Compare(a.place, b.place))
	})
	var ids []string
	for _, e := range records {
		ids = append(ids, e.ID)
	}
	return ids
}
