package checkpoint

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Places are the saved places of the named sinks, including what is on disk for them, by sink and resource; no names
// are all sinks.
func (s *Store) Places(sinkNames ...string) (map[string]map[string]Places, error) {
	all, err := s.places(tablePlace, sinkNames...)
	if err != nil {
		return nil, err
	}
	onDisk, err := s.places(tableDiskPlace, sinkNames...)
	for name, resources := range onDisk {
		if all[name] == nil {
			all[name] = map[string]Places{}
		}
		maps.Copy(all[name], resources)
	}
	return all, err
}

// Lowest is the position from which a watch of the scope brings everything that the sink lacks; zero if it has none.
func (p Places) Lowest(scope Scope) (lowest Point) {
	p.Each(scope, func(_ string, place Place) {
		if place.At.History != 0 && (lowest.History == 0 || lowest.After(place.At)) {
			lowest = place.At
		}
	})
	return lowest
}

// Reached is the newest history of which any sink was given something of the stream, 0 if there is none.
func (s *Store) Reached(stream *change.Stream) (newest History, err error) {
	all, err := s.Places()
	for _, resources := range all {
		resources[stream.Resource.String()].Each(ScopeOf(stream), func(_ string, place Place) {
			newest = max(newest, place.At.History)
		})
	}
	return newest, err
}

// KnowStreams notes the resources of the streams, for when nobody serves them any more.
func (s *Store) KnowStreams(streams []change.Stream) error {
	return s.write(func(r *rows) error {
		for _, stream := range streams {
			key, value := keyOf(tableResource, stream.String()), appendResource(nil, stream.Resource)
			known, _, err := s.get(key)
			if err != nil {
				return err
			}
			if !bytes.Equal(known, value) {
				r.set(key, value)
			}
		}
		return nil
	})
}

// KnownStreams are the streams that were noted, and of which a sink was given something.
func (s *Store) KnownStreams() (streams []change.Stream, err error) {
	places, err := s.Places()
	if err != nil {
		return nil, err
	}
	err = s.each([]byte{tableResource}, func(key, _ []byte) error {
		stream, found, err := s.Resource(string(key[1:]))
		if found && isGiven(places, &stream) {
			streams = append(streams, stream)
		}
		return err
	})
	return streams, err
}

// isGiven says whether a sink was given something of the stream.
func isGiven(places map[string]map[string]Places, stream *change.Stream) (is bool) {
	for _, resources := range places {
		is = is || resources[stream.Resource.String()].Any(ScopeOf(stream), func(Place) bool { return true })
	}
	return is
}

// ForgetStream forgets a stream that is over, unless a sink does not know that yet. gone says whether it is forgotten.
func (s *Store) ForgetStream(stream *change.Stream) (gone bool, err error) {
	places, err := s.Places()
	if err != nil || isGiven(places, stream) {
		return false, err
	}
	return true, s.write(func(r *rows) error {
		dropObjects(r, stream.String())
		r.remove(keyOf(tableResource, stream.String()))
		r.remove(keyOf(tableDefined, stream.String()))
		return nil
	})
}

// SetPlaces makes the named sinks go on with the stream from the version, and returns a sink's position before that.
func (s *Store) SetPlaces(sinkNames []string, stream *change.Stream, version string) (was string, err error) {
	scope, resource, found := ScopeOf(stream), stream.Resource.String(), false
	err = s.write(func(r *rows) error {
		for _, table := range []byte{tableDiskPlace, tablePlace} {
			places, err := s.places(table, sinkNames...)
			if err != nil {
				return err
			}
			for _, name := range slices.Sorted(maps.Keys(places)) {
				places[name][resource].Each(scope, func(namespace string, place Place) {
					if !found {
						was, found = places[name][resource].Lowest(scope).Version, true
					}
					place.At.Version, place.At.History = version, max(place.At.History, 1)
					r.set(keyOf(table, name, resource, namespace), appendPlace(nil, place))
				})
			}
		}
		return nil
	})
	if err == nil && !found {
		err = fmt.Errorf("set the position of %s: no sink was given it", stream)
	}
	return was, err
}

// SinkRow is the row of an object that a sink has.
type SinkRow struct {
	Sink string
	SinkObject
}

// Select yields the objects of the resource that the named sinks have and keep chooses, in the namespace, or in all
// with "". They come in the order of their keys, and then of the sinks' names, as saved when the loop begins. No index
// by uid is kept: its upkeep would cost much of every commit, for a question that is rarely asked.
func (s *Store) Select(
	sinkNames []string, resource, namespace string, keep func(*SinkObject) bool,
) iter.Seq2[SinkRow, error] {
	return func(yield func(SinkRow, error) bool) {
		type front struct {
			row  SinkRow // after an error it has no key, and is before all others
			err  error
			next func() (SinkObject, error, bool)
		}
		advance := func(f *front) (found bool) {
			f.row.SinkObject, f.err, found = f.next()
			for found && f.err == nil && !keep(&f.row.SinkObject) {
				f.row.SinkObject, f.err, found = f.next()
			}
			return found
		}
		var fronts []*front
		for _, name := range slices.Sorted(slices.Values(sinkNames)) {
			l := newLayer(s.database, name)
			next, stop := iter.Pull2(l.rowsOf(tableRow, resource, cmp.Or(namespace, Others), ""))
			defer stop()
			if f := (&front{row: SinkRow{Sink: name}, next: next}); advance(f) {
				fronts = append(fronts, f)
			}
		}
		for len(fronts) > 0 {
			first := slices.MinFunc(fronts, func(a, b *front) int {
				return cmp.Or(strings.Compare(a.row.Of.Key.String(), b.row.Of.Key.String()), strings.Compare(a.row.Sink, b.row.Sink))
			})
			if !yield(first.row, first.err) || first.err != nil {
				return
			}
			fronts = slices.DeleteFunc(fronts, func(f *front) bool { return f == first && !advance(f) })
		}
	}
}

// CountRows is the number of objects that the sink has of the resource, in the scope. It reads all of them.
func (s *Store) CountRows(sinkName, resource string, scope Scope) (n int, err error) {
	err = s.each(rowPrefix(tableRow, sinkName, resource, scope), func(_, _ []byte) error { n++; return nil })
	return n, err
}

// HasRows says whether the sink has an object of the resource, in the scope.
func (s *Store) HasRows(sinkName, resource string, scope Scope) (bool, error) {
	return s.holds(rowPrefix(tableRow, sinkName, resource, scope))
}

// ResourcesOf are the resources of which the sink has objects or a position, sorted.
func (s *Store) ResourcesOf(sinkName string) ([]string, error) {
	found := map[string]bool{}
	places, err := s.Places(sinkName)
	if err != nil {
		return nil, err
	}
	for resource := range places[sinkName] {
		found[resource] = true
	}
	prefix := keyOf(tableRow, sinkName, "")
	err = s.iterate(s.db, prefix, after(prefix), func(at *pebble.Iterator) bool {
		resource, _, _ := bytes.Cut(at.Key()[len(prefix):], []byte{terminator})
		found[string(resource)] = true
		return at.SeekGE(after(keyOf(tableRow, sinkName, string(resource), "")))
	})
	return slices.Sorted(maps.Keys(found)), err
}

// KnownSinks are the names of the sinks that the state knows anything of, sorted.
func (s *Store) KnownSinks() ([]string, error) {
	places, err := s.Places()
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for name := range places {
		names[name] = true
	}
	marks, err := s.Marks()
	for name := range marks {
		names[name] = true
	}
	return slices.Sorted(maps.Keys(names)), err
}

// Forget removes all that is known of the sink, and what waits for it on disk: if it comes back later, it is new.
func (s *Store) Forget(sinkName string) error {
	err := s.write(func(r *rows) error {
		for _, table := range append(pendingTables(), tableRow, tableGrave, tablePlace, tableDiskRow, tableDiskPlace, tableSpool) {
			r.removeAll(keyOf(table, sinkName, ""))
		}
		for _, table := range []byte{tableMark, tableSpooled, tableHeard, tableConfig} {
			r.remove(keyOf(table, sinkName))
		}
		return nil
	})
	if err != nil { // nothing was removed
		return err
	}
	s.forgetReclaimed(sinkName)
	prefix := keyOf(tableSpool, sinkName, "")
	return s.excise(prefix, after(prefix))
}

// Marks are the marks of all sinks, by name.
func (s *Store) Marks() (map[string]sink.Mark, error) {
	return byName(s.database, tableMark, "", func(value []byte) (sink.Mark, error) { return sink.Mark(value), nil })
}
