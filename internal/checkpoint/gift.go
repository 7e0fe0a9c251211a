package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"strconv"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// A resource goes from one task to another with all that is saved of it, one sink after the other. The task that had it
// puts it aside, and notes for whom; the other task takes it from there. What is put aside stays until the resource is
// put aside again, since the other task may die on the way. Gifts are numbered, so that none is taken twice.

// Gift describes what was put aside last of a resource, for one sink.
type Gift struct {
	To     int    // the task; 0 says that the resource has come back since
	Number uint64 // rises with each gift of the resource by the state
	Mark   string // of the sink: its log up to here is part of the gift
}

// Key identifies what tasks give to each other.
type Key struct{ Sink, Resource string }

// Give puts aside what is saved of the resource for the sink, of which nothing may be on disk. It numbers the gift,
// whose mark is the sink's from then on. What was given away already is dropped, and not given again: it comes from a
// log that was read anew. Give may be called again after an error.
func (s *Store) Give(state *SinkState, resource string, gift Gift) error {
	before, err := s.gift(Key{state.Name, resource})
	if err != nil {
		return err
	}
	aside, moved := keyOf(tableGiven, state.Name, resource, ""), tablesOf(state.Name, resource)
	if err := s.SaveSinks([]*SinkState{state}, Spools{}, nil); err != nil {
		return err
	}
	if isNew := before.To == 0; isNew {
		if err := s.removeAll(aside); err != nil {
			return err
		}
		for _, prefix := range moved {
			if err := s.copy(s.database, prefix, func(key []byte) []byte { return append(bytes.Clone(aside), key...) }); err != nil {
				return err
			}
		}
		// A log that was lost counts anew, and whoever takes remembers what it took of the log before.
		before = Gift{To: gift.To, Number: max(before.Number+1, uint64(time.Now().UnixMicro())), Mark: gift.Mark}
	}
	err = s.write(func(r *rows) error {
		for _, prefix := range moved {
			r.removeAll(prefix)
		}
		r.set(keyOf(tableGift, state.Name, resource), appendGift(&before))
		r.set(keyOf(tableMark, state.Name), []byte(gift.Mark))
		return nil
	})
	if err == nil {
		state.drop(resource)
		state.Mark, state.savedMark = gift.Mark, gift.Mark
	}
	return err
}

// tablesOf are the prefixes of the keys of what a sink has of the resource.
func tablesOf(sinkName, resource string) (all [][]byte) {
	for _, table := range []byte{tableRow, tableGrave, tablePlace} {
		all = append(all, keyOf(table, sinkName, resource, ""))
	}
	return all
}

// drop forgets the resource, of which nothing is saved any more.
func (l *layer) drop(resource string) {
	delete(l.Places, resource)
	delete(l.savedPlaces, resource)
	delete(l.graves, resource)
	delete(l.touched, resource)
	delete(l.digests, resource)
	maps.DeleteFunc(l.pending, func(of Object, _ applied) bool { return of.Resource == resource })
}

// copiedAtOnce is about how many bytes one batch of a copy has (I6).
const copiedAtOnce = 1 << 20

// copy copies the keys with the prefix from another state, or the same one, under other keys.
func (s *Store) copy(from *database, prefix []byte, to func(key []byte) []byte) error {
	view := from.db.NewSnapshot()
	defer func() { _ = view.Close() }() // it never fails
	for at := prefix; at != nil; {
		err := s.write(func(r *rows) error {
			begin, size := at, 0
			at = nil
			return from.iterate(view, begin, after(prefix), func(here *pebble.Iterator) bool {
				if size > copiedAtOnce {
					at = bytes.Clone(here.Key())
					return false
				}
				r.set(to(here.Key()), here.Value())
				size += len(here.Key()) + len(here.Value())
				return here.Next()
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) gift(of Key) (Gift, error) {
	gift, _, err := read(s.database, keyOf(tableGift, of.Sink, of.Resource), ofGifts, parseGift)
	return gift, err
}

// ofGifts describes the table of gifts in errors.
const ofGifts = "what was put aside for another task"

func appendGift(g *Gift) []byte {
	return append(binary.AppendUvarint(binary.AppendUvarint(nil, uint64(g.To)), g.Number), g.Mark...)
}

func parseGift(value []byte) (Gift, error) {
	to, width := binary.Uvarint(value)
	number, more := binary.Uvarint(value[max(width, 0):])
	if width <= 0 || more <= 0 {
		return Gift{}, errValue
	}
	return Gift{To: int(to), Number: number, Mark: string(value[width+more:])}, nil
}

// Holding is what a task's state has, as far as other tasks need to know.
type Holding struct {
	Has   map[Key]bool           // without what was given away
	Gifts map[Key]Gift           // that have not come back
	Taken map[Key]map[int]uint64 // by the task that gave it: the number of the gift that was taken last
	Half  map[string]bool        // resources that some sinks may not have taken yet
}

// Holding reads the Holding of the state.
func (s *Store) Holding() (Holding, error) {
	h := Holding{Has: map[Key]bool{}, Gifts: map[Key]Gift{}, Taken: map[Key]map[int]uint64{}}
	places, err := s.Places()
	for name, resources := range places {
		for resource, of := range resources {
			if len(of) > 0 {
				h.Has[Key{name, resource}] = true
			}
		}
	}
	if err != nil {
		return h, err
	}
	err = s.each([]byte{tableGift}, func(key, value []byte) error {
		name, resource, _ := bytes.Cut(key[1:], []byte{terminator})
		of := Key{string(name), string(resource)}
		gift, err := parseGift(value)
		if err != nil {
			return s.badValue(ofGifts, err)
		}
		if gift.To != 0 {
			h.Gifts[of] = gift
			delete(h.Has, of)
		}
		return nil
	})
	if err != nil {
		return h, err
	}
	h.Half, err = byName(s.database, tableTasks, "", func([]byte) (bool, error) { return true, nil })
	delete(h.Half, "") // which is OfTasks'
	if err != nil {
		return h, err
	}
	return h, s.each([]byte{tableTaken}, func(key, value []byte) error {
		parts := bytes.Split(key[1:], []byte{terminator})
		number, err := parseNumber(value)
		if err != nil || len(parts) != 3 {
			return s.badValue("what was taken from other tasks", errValue)
		}
		task, err := strconv.Atoi(string(parts[2]))
		of := Key{string(parts[0]), string(parts[1])}
		if h.Taken[of] == nil {
			h.Taken[of] = map[int]uint64{}
		}
		h.Taken[of][task] = number
		return err
	})
}

// Taking says how a gift is taken.
type Taking struct {
	Giver int
	Of    Key
	Gift  Gift
	Mark  string // the sink's from then on; "" leaves it as it is
	Empty bool   // what was put aside says nothing here: it is of another history
}

// Take takes what the giver's state has put aside for the sink, and what it keeps of the resource's objects. It must be
// called before the sink is opened, and again after a crash.
func (s *Store) Take(from *Store, how Taking) error {
	of := how.Of
	if !how.Empty {
		if err := s.takeKept(from, of.Resource); err != nil {
			return err
		}
	}
	for _, prefix := range tablesOf(of.Sink, of.Resource) {
		if err := s.removeAll(prefix); err != nil {
			return err
		}
	}
	aside := keyOf(tableGiven, of.Sink, of.Resource, "")
	if !how.Empty {
		if err := s.copy(from.database, aside, func(key []byte) []byte { return bytes.Clone(key[len(aside):]) }); err != nil {
			return err
		}
	}
	ours, err := s.gift(of)
	if err != nil {
		return err
	}
	return s.write(func(r *rows) error {
		if ours.Number > 0 {
			r.set(keyOf(tableGift, of.Sink, of.Resource), appendGift(&Gift{Number: ours.Number}))
		}
		if how.Mark != "" {
			r.set(keyOf(tableMark, of.Sink), []byte(how.Mark))
		}
		r.set(keyOf(tableTaken, of.Sink, of.Resource, strconv.Itoa(how.Giver)), binary.AppendUvarint(nil, how.Gift.Number))
		return nil
	})
}

// takeKept takes what is kept of the resource's objects, and what is known of its streams. The first sink that takes
// the resource does so for all.
func (s *Store) takeKept(from *Store, resource string) error {
	places, err := s.Places()
	if err != nil {
		return err
	}
	for _, resources := range places {
		if len(resources[resource]) > 0 {
			return nil
		}
	}
	known := map[string]bool{}
	err = from.each([]byte{tableResource}, func(key, _ []byte) error {
		stream, found, err := from.Resource(string(key[1:]))
		if found && stream.Resource.String() == resource {
			known[stream.String()] = true
		}
		return err
	})
	if err != nil {
		return err
	}
	asItIs := func(key []byte) []byte { return bytes.Clone(key) }
	for stream := range known {
		objects := keyOf(tableObject, stream, "")
		err := s.removeAll(objects)
		if err == nil {
			err = s.copy(from.database, objects, asItIs)
		}
		for _, table := range []byte{tableForm, tableDefined, tableResource} {
			value, found, getErr := from.get(keyOf(table, stream))
			if err = errors.Join(err, getErr); err == nil && found {
				err = s.set(keyOf(table, stream), value)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// AdoptHistories takes from another task's state which clusters had the name, if this state knows none.
func (s *Store) AdoptHistories(from *Store) error {
	known, err := s.holds([]byte{tableUID})
	if err != nil || known {
		return err
	}
	return s.copy(from.database, []byte{tableUID}, func(key []byte) []byte { return bytes.Clone(key) })
}

// SharesHistories says whether both states know the same clusters, and the same histories of them.
func (s *Store) SharesHistories(with *Store) (bool, error) {
	ours, err := s.met()
	if err != nil {
		return false, err
	}
	theirs, err := with.met()
	return maps.Equal(ours, theirs), err
}

// BeginTaking notes durably that the resource is being taken, sink by sink, until EndTaking.
func (s *Store) BeginTaking(resource string) error { return s.set(keyOf(tableTasks, resource), nil) }

// EndTaking notes that all sinks have taken it.
func (s *Store) EndTaking(resource string) error {
	return s.write(func(r *rows) error { r.remove(keyOf(tableTasks, resource)); return nil })
}

// OfTasks notes durably that the state is of one of several tasks.
func (s *Store) OfTasks() error { return s.set(keyOf(tableTasks), []byte{1}) }

// IsOfTasks says whether OfTasks was ever called.
func (s *Store) IsOfTasks() (bool, error) {
	_, found, err := s.get(keyOf(tableTasks))
	return found, err
}
