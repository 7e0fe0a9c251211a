package checkpoint

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Absence is that a sink is not given a stream which it has a subscription to: it failed for good and was let go, is
// not configured, or does not take the stream now. Its mark stays, and what it misses of deletes is kept, since nobody
// else would remember that it has those objects. It costs what existed when it left, at most, whatever is made and
// deleted meanwhile.
//
// It ends with the stream's full snapshot of reason absent: the sink misses nothing after the gap of that, and
// everything that it has missed was told when the first object of the snapshot, or its end, is delivered.
//
// A sink that had a stream only in part, when Inherit made that whole, is absent from it without a subscription, and
// since no time. Whoever begins to read the stream ends that (Batch.Left) and makes the sink take it as a new one, or
// makes it absent.
type Absence struct {
	Subscription
	From      change.Position // of the stream when the sink left: what is below it, the sink has or has on disk
	Since     time.Time       // when it left
	Returning bool            // it has the gap, and misses nothing any more
}

// InPart says whether the sink had the stream only in part, and nobody has begun to read it since.
func (a *Absence) InPart() bool { return a.Since.IsZero() }

// Held is what a sink's log holds of one object after the mark, when the sink comes back: whether it exists there.
type Held struct {
	Subscription
	Entry  change.Entry
	Exists bool
	// OnDisk says of one that does not exist that its delete is on disk: it will be told, if it is not left out.
	OnDisk bool
	// Ahead is the epoch, as of change.ID's Cluster, whose position is still to reach the entry's version, "" where it
	// has: the log holds the object unless it is known to hold its delete.
	Ahead string
}

// absences are what sinks miss.
type absences struct {
	*database
	byStream map[string][]Absence // as they are saved; the database's lock guards it
}

// load remembers them, since each record is to be compared with them; the caller holds mu, or is the only one.
func (a *absences) load() error {
	all, err := a.Absences()
	a.byStream = map[string][]Absence{}
	for _, absence := range all {
		a.byStream[absence.Stream] = append(a.byStream[absence.Stream], absence)
	}
	return err
}

// Absences are all, sorted by sink and stream.
func (a *absences) Absences() ([]Absence, error) {
	var all []Absence
	err := a.each([]byte{tableAbsent}, func(key, value []byte) error {
		subscription, ok := parseSubscription(key)
		if !ok {
			return a.badValue("an absence", errValue)
		}
		absence, err := parseAbsence(value)
		if err != nil {
			return a.badValue("an absence", err)
		}
		absence.Subscription = subscription
		all = append(all, absence)
		return nil
	})
	return all, err
}

// Missed are the objects of the stream that the sink, which is absent, has and which are gone.
func (a *absences) Missed(subscription Subscription, clusterUID string) ([]change.Entry, error) {
	position, _, err := streams{a.database}.Position(subscription.Stream)
	if err != nil {
		return nil, err
	}
	here := historyOf(position, clusterUID)
	var gone []change.Entry
	prefix := objectPrefix(tableMissed, subscription)
	err = a.each(prefix, func(key, value []byte) error {
		ahead, rest, err := cutText(value)
		if err != nil {
			return a.badValue("a missed delete", err)
		}
		joined, _, _ := bytes.Cut(key[len(prefix):], []byte{terminator})
		entry := change.Entry{Key: change.ParseKey(string(joined))}
		if entry.UID, entry.ResourceVersion, err = parseEntry(rest); err != nil {
			return a.badValue("a missed delete", err)
		}
		if ahead == told || ahead == onDisk || ahead != "" && ahead == here && change.CompareVersions(entry.ResourceVersion, position.ResourceVersion) > 0 {
			return nil // it has the delete, or the record comes again
		}
		known, found, err := inventory{a.database}.Lookup(subscription.Stream, entry.Key)
		if err == nil && (!found || known.UID != entry.UID) {
			gone = append(gone, entry)
		}
		return err
	})
	return gone, err
}

// of is the sink's absence from the stream. Where there is none, From is all the same how far the sink was given it.
func (a *absences) of(subscription Subscription) (found Absence, absent bool, err error) {
	value, absent, err := a.get(absentKey(subscription))
	switch {
	case err != nil:
		return found, false, err
	case !absent:
		found.From, _, err = streams{a.database}.Position(subscription.Stream)
		return found, false, err
	}
	if found, err = parseAbsence(value); err != nil {
		err = a.badValue("an absence", err)
	}
	return found, true, err
}

// held is what is noted of an object that the sink has: the version in its log, and what is in the place of an epoch.
func (a *absences) held(key []byte) (version, ahead string, err error) {
	value, found, err := a.get(key)
	if err != nil || !found {
		return "", "", err
	}
	ahead, rest, err := cutText(value)
	if err == nil {
		_, version, err = parseEntry(rest)
	}
	if err != nil {
		return "", "", a.badValue("a missed delete", err)
	}
	if ahead == told && version == "" {
		ahead = onDisk
	}
	return version, ahead, nil
}

// isPresent says whether the history, as of change.ID's Cluster, is the one of the stream's position.
func (a *absences) isPresent(history, stream string) (bool, error) {
	position, _, err := streams{a.database}.Position(stream)
	return position.Epoch == "" || historyOf(position, "") == history, err
}

// historyOf is that of the position, as of change.ID's Cluster, or the first one of the cluster with the uid.
func historyOf(position change.Position, clusterUID string) string {
	return (&change.Record{Stream: &change.Stream{}, Epoch: position.Epoch}).ID(clusterUID).Cluster
}

// told, in the place of an epoch, is an object of which the sink's log says that it is gone, whenever the others hear
// of it.
const told = "-"

// onDisk, in the place of an epoch, is an object whose delete is on disk for the sink. Who leaves that out says so. It
// is saved as told, without a version.
const onDisk = "+"

func absentKey(s Subscription) []byte { return append(sinkPrefix(tableAbsent, s.Sink), s.Stream...) }

// missedKey has the uid in it: of one key, the log may tell of one object, and the queue on disk of another.
func missedKey(s Subscription, key change.Key, uid string) []byte {
	return append(append(appendKey(objectPrefix(tableMissed, s), key), terminator), uid...)
}

// objectPrefix is what the keys of a table begin with that belong to the sink's objects of the stream.
func objectPrefix(table byte, s Subscription) []byte {
	return append(sinkPrefix(table, s.Sink), streamPrefix(0, s.Stream)[1:]...)
}

// appendAbsence appends an absence: whether the sink returns, since when in ms, the position.
func appendAbsence(dst []byte, a *Absence) []byte {
	returning := byte(0)
	if a.Returning {
		returning = 1
	}
	return appendPosition(binary.AppendVarint(append(dst, returning), a.Since.UnixMilli()), a.From)
}

// parseAbsence is the inverse of appendAbsence.
func parseAbsence(value []byte) (Absence, error) {
	if len(value) == 0 || value[0] > 1 {
		return Absence{}, errValue
	}
	ms, width := binary.Varint(value[1:])
	if width <= 0 {
		return Absence{}, errValue
	}
	from, err := parsePosition(bytes.Clone(value[1+width:]))
	return Absence{From: from, Since: time.UnixMilli(ms), Returning: value[0] == 1}, err
}
