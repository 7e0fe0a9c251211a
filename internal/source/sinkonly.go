package source

import (
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
)

// sinkOnly are, by their keys, the objects that one sink's log alone holds, and that are to be told to be gone unless
// they are listed: of one key in the order of their versions, since each has taken the place of the one before (I3). It
// is pure.
type sinkOnly map[change.Key][]change.SinkOnly

func newSinkOnly(objects []change.SinkOnly) sinkOnly {
	s := sinkOnly{}
	for _, object := range objects {
		s[object.Key] = append(s[object.Key], object)
	}
	for _, ofKey := range s {
		slices.SortStableFunc(ofKey, func(a, b change.SinkOnly) int {
			return change.CompareVersions(a.ResourceVersion, b.ResourceVersion)
		})
	}
	return s
}

// take drops those of the entry's object, which are later versions of it and gone with it, and returns the newest of
// all.
func (s sinkOnly) take(entry change.Entry) change.Entry {
	s.drop(entry.Key, func(g change.SinkOnly) bool {
		ours := g.UID == entry.UID
		if ours && change.CompareVersions(g.ResourceVersion, entry.ResourceVersion) > 0 {
			entry.ResourceVersion = g.ResourceVersion
		}
		return ours
	})
	return entry
}

// dropComing drops those that the watch brings again, since they are newer than the version or told of already.
func (s sinkOnly) dropComing(version string, told func(change.Key) bool) {
	for key := range s {
		told := told(key)
		s.drop(key, func(g change.SinkOnly) bool {
			return told || !g.Undeleted && change.CompareVersions(g.ResourceVersion, version) > 0
		})
	}
}

// drop drops those of the key that are so.
func (s sinkOnly) drop(key change.Key, are func(change.SinkOnly) bool) {
	left := slices.DeleteFunc(s[key], are)
	if s[key] = left; len(left) == 0 {
		delete(s, key)
	}
}
