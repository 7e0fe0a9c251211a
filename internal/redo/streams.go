package redo

import "github.com/kubecdc/kubecdc/internal/change"

// StreamNamed is the one of the streams that has the name, nil where there is none.
func StreamNamed(streams []*change.Stream, name string) *change.Stream {
	for _, s := range streams {
		if s.String() == name {
			return s
		}
	}
	return nil
}

// StreamOf is the one of the streams that the id's record came from, nil where there is none.
func StreamOf(streams []*change.Stream, id change.ID) *change.Stream {
	for _, s := range streams {
		if isOf(id, s) {
			return s
		}
	}
	return nil
}

// isOf says whether the id's record came from the stream.
func isOf(id change.ID, stream *change.Stream) bool {
	return id.Resource == stream.Resource.String() &&
		(stream.Namespace == "" || stream.Namespace == id.Key.Namespace)
}

func isNamed(name string) func(*change.Stream) bool {
	return func(s *change.Stream) bool { return s.String() == name }
}
