package selection

import (
	"sync/atomic"

	"github.com/kubecdc/kubecdc/internal/change"
)

// answers are what is said of the streams of one choice.
type answers[T any] struct {
	of       *Choice
	byStream map[change.Stream]T
}

// Following answers of each stream what say does of the selected one, and follows the streams that come and go. It may
// be asked from any goroutine. A stream that is over, and of which something is still on disk, has the names that its
// resource can be configured by.
func Following[T any](c *Current, say func(*Selected) T) func(*change.Stream) T {
	var known atomic.Pointer[answers[T]]
	return func(stream *change.Stream) T {
		now, a := c.Chosen.Load(), known.Load()
		if a == nil || a.of != now {
			a = answersOf(now, say)
			known.Store(a)
		}
		if answer, found := a.byStream[*stream]; found {
			return answer
		}
		return say(&Selected{Stream: *stream, Names: PossibleNames(stream.Resource)})
	}
}

func answersOf[T any](chosen *Choice, say func(*Selected) T) *answers[T] {
	a := &answers[T]{of: chosen, byStream: map[change.Stream]T{}}
	if chosen == nil {
		return a
	}
	for i := range chosen.Streams {
		a.byStream[chosen.Streams[i].Stream] = say(&chosen.Streams[i])
	}
	return a
}

// PossibleNames are those that a configuration can have for the resource, the narrowest first.
func PossibleNames(resource change.Resource) []string {
	names := []string{resource.String(), "*"}
	if resource.Group != "" {
		names = []string{resource.String(), "*." + resource.Group, "*"}
	}
	return names
}

// ByResource finds the streams of a resource, as kubectl names it, and follows those that come and go. It may be asked
// from any goroutine.
func ByResource(c *Current) func(resource string) []*Selected {
	return by(c, func(s *Selected) string { return s.Stream.Resource.String() })
}

// by finds the streams of which the key is true, and follows those that come and go.
func by[K comparable](c *Current, keyOf func(*Selected) K) func(K) []*Selected {
	type streams struct {
		of    *Choice
		byKey map[K][]*Selected
	}
	var known atomic.Pointer[streams]
	return func(key K) []*Selected {
		now, a := c.Chosen.Load(), known.Load()
		if a == nil || a.of != now {
			a = &streams{now, map[K][]*Selected{}}
			if now == nil {
				return nil
			}
			for i := range now.Streams {
				s := &now.Streams[i]
				a.byKey[keyOf(s)] = append(a.byKey[keyOf(s)], s)
			}
			known.Store(a)
		}
		return a.byKey[key]
	}
}
