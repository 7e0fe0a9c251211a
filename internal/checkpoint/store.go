package checkpoint

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/s2"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Open opens the state in the directory and creates what is missing, unless it is opened read-only. It never resets a
// state: one that is damaged, of another format, or in use is refused with a *DamagedError, *FormatError or
// *InUseError, a full volume with a *disk.FullError, and a missing state that is opened read-only with ErrNoState.
//
// Open gives up when ctx ends; what is still under way then ends by itself, and releases the directory.
func Open(ctx context.Context, dir string, opts Options) (*Store, error) {
	d, err := newDatabase(ctx, dir, opts.withDefaults())
	if err != nil {
		return nil, err
	}
	s := &Store{database: d, spools: spools{database: d, reclaimed: map[string]*reclaimed{}}}
	if err := d.open(ctx, func() error { return inOrder(d.checkFormat, s.load, d.record) }); err != nil {
		return nil, err
	}
	return s, nil
}

// MaxRecords is the most records that one save should have if no objects are kept: a larger one costs many times as
// much, because Pebble makes it into a table of its own.
const MaxRecords = 3000

// Batch is what one Commit saves: what somebody has asked for.
type Batch struct {
	// PendingSnapshots are snapshots that are owed from now on. One that is owed already is owed from its beginning
	// again, in a newer Generation.
	PendingSnapshots []PendingSnapshot
	// Steered are the pending snapshots, each in the Generation that is meant, to which Steering applies.
	Steered  []PendingSnapshot
	Steering Steering
	// Heard is, by the name of the sink, what was heard through its broker: texts that only package signal reads. It is
	// saved with what was asked for there. An empty text forgets it.
	Heard map[string][]byte
}

// Commit saves the batch whole or not at all, and returns when it is durable (I5).
func (s *Store) Commit(b Batch) error {
	return s.write(func(r *rows) error {
		for _, pending := range b.PendingSnapshots {
			if err := s.owe(r, &pending); err != nil {
				return err
			}
		}
		for _, pending := range b.Steered {
			if err := s.steer(r, b.Steering, &pending); err != nil {
				return err
			}
		}
		for name, heard := range b.Heard {
			if len(heard) == 0 {
				r.remove(keyOf(tableHeard, name))
				continue
			}
			r.set(keyOf(tableHeard, name), heard)
		}
		return nil
	})
}

// Heard is what was heard through the sink's broker, nil if nothing was.
func (s *Store) Heard(sinkName string) ([]byte, error) {
	value, _, err := s.get(keyOf(tableHeard, sinkName))
	return value, err
}

// Hearing are the sinks through whose brokers something was heard, sorted.
func (s *Store) Hearing() ([]string, error) { return s.names(tableHeard) }

// Store is the saved state of one exporter: one directory, owned by one process at a time (I10). All methods but
// Close may be called from several goroutines; none may be called after Close, and scans must have ended before it.
//
// Its errors are a *disk.FullError if the volume is full, in which case the same call works later, a *DamagedError if
// the files are not what was written, and otherwise the operating system's.
type Store struct {
	*database
	spools
}

// Images are what is kept of the object, its forms uncompressed. The caller owns them.
func (s *Store) Images(stream string, key change.Key) (change.Images, error) {
	all, err := s.packed(stream, key)
	for at := range all {
		if err == nil {
			if all[at].Object, err = s2.Decode(nil, all[at].Object); err != nil {
				err = s.badValue("the object "+key.String()+" of "+stream, err)
			}
		}
	}
	return all, err
}

// packed are the images of the object as they are saved, with compressed forms.
func (s *Store) packed(stream string, key change.Key) (all change.Images, err error) {
	value, _, err := s.get(objectKey(stream, key))
	if err != nil {
		return nil, err
	}
	for r := (Reader{Rest: value}); len(r.Rest) > 0; {
		all = append(all, change.Image{
			UID: r.Text(), Version: r.Text(), Sinks: strings.Split(r.Text(), "\n"), Object: r.Bytes(),
		})
		if r.Bad {
			return nil, s.badValue("the object "+key.String()+" of "+stream, errValue)
		}
	}
	return all, nil
}

func objectKey(stream string, key change.Key) []byte { return keyOf(tableObject, stream, key.String()) }

// KeptObject is an object as a sink was told of it last, kept to be the Before of the next record.
type KeptObject struct {
	Stream string
	Key    change.Key
	change.Image
}

// Keeping is what is to be kept of objects, in the order in which a sink was told, and the names of all sinks.
type Keeping struct {
	Objects []KeptObject
	Sinks   []string
}

// keep adds what sinks were told of objects to what is kept of them. It drops what is kept for sinks that do not exist
// any more.
func (s *Store) keep(r *rows, keeping *Keeping) error {
	type object struct {
		stream string
		key    change.Key
	}
	told := map[object]change.Images{}
	for _, k := range keeping.Objects {
		if k.Object != nil {
			k.Object = s2.Encode(nil, k.Object)
		}
		of := object{k.Stream, k.Key}
		told[of] = append(told[of], k.Image)
	}
	for of, images := range told {
		all, err := s.packed(of.stream, of.key)
		if err != nil {
			return err
		}
		for _, image := range images {
			all = all.Tell(image)
		}
		at := objectKey(of.stream, of.key)
		r.value = r.value[:0]
		for _, image := range all {
			isGone := func(name string) bool { return !slices.Contains(keeping.Sinks, name) }
			if sinks := slices.DeleteFunc(image.Sinks, isGone); len(sinks) > 0 {
				for _, text := range []string{image.UID, image.Version, strings.Join(sinks, "\n")} {
					r.value = appendText(r.value, text)
				}
				r.value = appendText(r.value, image.Object)
			}
		}
		if r.set(at, r.value); len(r.value) == 0 {
			r.remove(at)
		}
	}
	return nil
}

// KeepObjects says that the objects of the stream are kept from now on in the form, which tells what is cut and
// redacted; nil keeps nothing. What was kept in another form is forgotten: it may contain what is to be redacted now
// (I9).
func (s *Store) KeepObjects(stream string, form []byte) error {
	known, _, err := s.get(keyOf(tableForm, stream))
	if err != nil || bytes.Equal(known, form) {
		return err
	}
	err = s.write(func(b *rows) error {
		if dropObjects(b, stream); form != nil {
			b.set(keyOf(tableForm, stream), form)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("forget the objects of %s that were kept in another form: %w", stream, err)
	}
	return nil
}

// dropObjects removes what is kept of the stream's objects, and their form.
func dropObjects(b *rows, stream string) {
	b.remove(keyOf(tableForm, stream))
	b.removeAll(keyOf(tableObject, stream, ""))
}

// Resource is the stream of the name, false if the state does not know it. A stream outlives its resource, since the
// sinks are still to be told that its objects are gone. Its records on disk may outlive the stream.
func (s *Store) Resource(stream string) (change.Stream, bool, error) {
	key := change.ParseKey(stream)
	name, group, _ := strings.Cut(key.Name, ".")
	parse := func(value []byte) (of change.Stream, err error) {
		part := strings.Split(string(value), "\x00")
		if len(part) != 3 {
			return of, errValue
		}
		return change.Stream{Namespace: key.Namespace, Resource: change.Resource{
			Group: group, Version: part[0], Name: name, Kind: part[1], ClusterScoped: part[2] == "c",
		}}, nil
	}
	return read(s.database, keyOf(tableResource, stream), "the resource of "+stream, parse)
}

// Define notes that the stream is of a custom resource, whose definition has the generation. Such a resource is gone
// when its definition is, and not when a server does not serve it.
func (s *Store) Define(stream string, generation int64) error {
	return s.set(keyOf(tableDefined, stream), strconv.AppendInt(nil, generation, 10))
}

// Defined is what Define has noted, false if it was not called.
func (s *Store) Defined(stream string) (generation int64, found bool, err error) {
	return read(s.database, keyOf(tableDefined, stream), "the definition of "+stream, func(value []byte) (int64, error) {
		return strconv.ParseInt(string(value), 10, 64)
	})
}

// appendResource appends what a stream's name does not tell: version, kind, and "c" of a cluster-scoped resource.
func appendResource(dst []byte, r change.Resource) []byte {
	scope := ""
	if r.ClusterScoped {
		scope = "c"
	}
	return append(dst, strings.Join([]string{r.Version, r.Kind, scope}, "\x00")...)
}

// PendingSnapshot is a full snapshot of a stream that is owed to one sink, until it is complete or stopped.
type PendingSnapshot struct {
	Stream string
	change.Owed
	Paused bool // it waits until somebody resumes it
}

// pendingTables are the tables of pending snapshots. Those with limits have a table of their own.
func pendingTables() []byte { return []byte{tablePending, tableLimited} }

// PendingSnapshots are the snapshots that are owed, sorted by sink and stream.
func (s *Store) PendingSnapshots() ([]PendingSnapshot, error) {
	return s.snapshotsWith(func(is standing) bool { return is != stopped })
}

// StoppedSnapshots are the snapshots that were stopped before their end, until they are owed again.
func (s *Store) StoppedSnapshots() ([]PendingSnapshot, error) {
	return s.snapshotsWith(func(is standing) bool { return is == stopped })
}

// snapshotsWith are the snapshots whose standing holds accepts, sorted by sink and stream.
func (s *Store) snapshotsWith(holds func(standing) bool) (all []PendingSnapshot, err error) {
	for _, table := range pendingTables() {
		err := s.each([]byte{table}, func(key, value []byte) error {
			pendingSnapshot, is, err := parsePending(key, value)
			if err != nil {
				return s.badValue("a pending snapshot", err)
			}
			if pendingSnapshot.Paused = is == paused; holds(is) {
				all = append(all, pendingSnapshot)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(all, func(a, b PendingSnapshot) int {
		return cmp.Or(cmp.Compare(a.Sink, b.Sink), cmp.Compare(a.Stream, b.Stream))
	})
	return all, nil
}

// standing is the state of a pending snapshot, and the end of its value.
type standing string

const (
	nothing standing = "\x00nothing" // the snapshot is not known; never saved
	owed    standing = ""
	paused  standing = "\x00paused"
	stopped standing = "\x00stopped" // it is not owed any more, until it is again in a newer generation
)

// find reads the generation and the standing of the pending snapshot.
func (s *Store) find(of *PendingSnapshot) (generation uint64, is standing, err error) {
	value, found, err := s.get(pendingKey(of))
	if err != nil || !found {
		return 0, nothing, err
	}
	if generation, is, err = parsePendingValue(value); err != nil {
		err = s.badValue("a pending snapshot", err)
	}
	return generation, is, err
}

// owe notes a pending snapshot. One that is owed already is owed from its beginning again: the end of the one under way
// does not count.
func (s *Store) owe(r *rows, of *PendingSnapshot) error {
	generation, was, err := s.find(of)
	if err != nil {
		return err
	}
	if was != nothing {
		generation++
	}
	is := owed
	if of.Paused {
		is = paused
	}
	r.set(pendingKey(of), appendPending(nil, max(generation, of.Generation), is))
	return nil
}

// Steering is what may be done with a snapshot that is owed.
type Steering byte

const (
	Stop   Steering = iota // it is not owed any more
	Pause                  // it waits until Resume
	Resume                 // it goes on
)

// steer stops, pauses or resumes a pending snapshot, unless it has ended or is owed anew since. A resync is not owed,
// but becomes so when it is paused.
func (s *Store) steer(r *rows, do Steering, of *PendingSnapshot) error {
	generation, was, err := s.find(of)
	if err != nil || was != nothing && generation != of.Generation {
		return err
	}
	exists := was == owed || was == paused
	switch {
	case do == Pause && (exists || was == nothing && of.Reason == change.Resync):
		r.set(pendingKey(of), appendPending(nil, generation, paused))
	case do == Resume && exists:
		r.set(pendingKey(of), appendPending(nil, generation, owed))
	case do == Stop && exists:
		r.set(pendingKey(of), appendPending(nil, generation, stopped))
	}
	return nil
}

// Pay forgets the snapshot, which its sink has got, unless it is owed anew since.
func (s *Store) Pay(of PendingSnapshot) error {
	return s.write(func(r *rows) error {
		generation, was, err := s.find(&of)
		if err == nil && generation == of.Generation && (was == owed || was == paused) {
			r.remove(pendingKey(&of))
		}
		return err
	})
}

// appendPending appends the value of a pending snapshot: generation, standing. That of an owed one of generation 0 is
// empty.
func appendPending(dst []byte, generation uint64, is standing) []byte {
	if is == owed && generation == 0 {
		return dst
	}
	return append(binary.AppendUvarint(dst, generation), is...)
}

// parsePendingValue is the inverse of appendPending.
func parsePendingValue(value []byte) (generation uint64, is standing, err error) {
	if len(value) == 0 {
		return 0, owed, nil
	}
	generation, width := binary.Uvarint(value)
	if width <= 0 {
		return 0, nothing, errValue
	}
	for _, is := range []standing{paused, stopped} {
		if bytes.HasSuffix(value, []byte(is)) {
			return generation, is, nil
		}
	}
	return generation, owed, nil
}

func pendingKey(d *PendingSnapshot) []byte {
	if d.Limits == (change.Limits{}) {
		return keyOf(tablePending, d.Sink, d.Stream, string(d.Reason))
	}
	return keyOf(tableLimited, d.Sink, d.Stream, string(d.Reason), encodeLimits(d.Limits))
}

// encodeLimits writes the limits as JSON, which contains no terminator.
func encodeLimits(l change.Limits) string {
	text, _ := json.Marshal(l) // of three strings it cannot fail
	return string(text)
}

// parsePending is the inverse of pendingKey and appendPending.
func parsePending(key, value []byte) (d PendingSnapshot, is standing, err error) {
	parts := bytes.Split(key[1:], []byte{terminator})
	switch {
	case key[0] == tableLimited && len(parts) == 4:
		if err := json.Unmarshal(parts[3], &d.Limits); err != nil {
			return d, is, err
		}
	case key[0] != tablePending || len(parts) != 3:
		return d, is, errValue
	}
	d.Stream, d.Sink, d.Reason = string(parts[1]), string(parts[0]), change.Reason(parts[2])
	d.Generation, is, err = parsePendingValue(value)
	return d, is, err
}

// idLength is how many characters an ID has. Two of 2,000 pending snapshots have the same one once in 10,000 times.
const idLength = 7

// idLetters are Crockford's base 32: none of them is easily mistaken for another.
const idLetters = "0123456789abcdefghjkmnpqrstvwxyz"

// ID names the pending snapshot for people. It stays the same after a restart, and changes when the snapshot is
// requested again.
func (p *PendingSnapshot) ID() string {
	parts := []string{p.Sink, p.Stream, string(p.Reason), strconv.FormatUint(p.Generation, 10)}
	if p.Limits != (change.Limits{}) {
		parts = append(parts, encodeLimits(p.Limits))
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return base32.NewEncoding(idLetters).EncodeToString(sum[:])[:idLength]
}
