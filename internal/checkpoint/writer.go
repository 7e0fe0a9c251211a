package checkpoint

import (
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
)

// writer fills one batch with what changes together.
type writer struct {
	*rows
	db               *database
	pendingSnapshots *pendingBook
	absences         *absenceBook
	carried          sinks
	spools           *spools

	byPointer map[*change.Stream]*writtenStream
	byName    map[string]*writtenStream
}

// writtenStream is what a batch has of one stream.
type writtenStream struct {
	name     string
	prefix   []byte // of its inventory
	objects  []byte // of what is kept of them
	position change.Position
	ended    *ended // nil where the batch has nothing of that
}

// apply writes the parts of the batch, in the order in which they build on each other.
func (w *writer) apply(b *Batch) error {
	for _, rec := range b.Records {
		if err := w.record(rec); err != nil {
			return err
		}
	}
	w.sinks(b)
	if err := w.absent(b); err != nil {
		return err
	}
	for _, pendingSnapshot := range b.PendingSnapshots {
		if err := w.pendingSnapshots.owe(pendingSnapshot); err != nil {
			return err
		}
	}
	for _, pendingSnapshot := range b.Steered {
		if err := w.pendingSnapshots.steer(b.Steering, pendingSnapshot); err != nil {
			return err
		}
	}
	w.pendingSnapshots.close()
	w.spools.put(w.rows, b.Chunks, b.Spools)
	w.heard(b.Heard)
	w.streams(b)
	return nil
}

// record applies one record to the inventory and notes its position.
func (w *writer) record(rec *change.Record) error {
	stream := w.stream(rec.Stream)
	if rec.Position != (change.Position{}) {
		stream.position = rec.Position
	}
	if err := inOrder(func() error { return w.absences.miss(rec, stream.name) }, func() error { return w.end(stream, rec) }); err != nil {
		return err
	}
	switch {
	case rec.Sink != "" && rec.Snapshot != nil:
		if w.absences.misses(Subscription{rec.Sink, stream.name}) {
			return nil // the sink was not given it
		}
		return w.pendingSnapshots.pay(rec, stream.name)
	case rec.Sink != "" || !rec.Op.OfObject(): // what is for one sink tells nothing of the others
		return nil
	}
	keepObject(w.rows, stream.objects, rec)
	w.key = appendKey(append(w.key[:0], stream.prefix...), rec.Key)
	if rec.Op == change.Deleted {
		w.remove(w.key)
		return nil
	}
	w.value = appendEntry(w.value[:0], rec.UID, rec.ResourceVersion)
	w.set(w.key, w.value)
	return nil
}

// sinks writes the marks and what they carry, which streams sinks take from now on and which no longer, and the
// positions that their logs are to be compared with.
func (w *writer) sinks(b *Batch) {
	for name, mark := range b.Marks {
		w.set(markKey(name), []byte(mark))
	}
	w.carried.carry(w.rows, b.Marks, b.Carried)
	for _, subscription := range b.Left {
		w.leave(subscription)
	}
	for _, subscription := range b.Taken {
		w.set(subscriptionKey(subscription), nil)
	}
	for subscription, position := range b.Based {
		w.set(replayBaseKey(subscription), appendPosition(nil, position))
	}
	for _, name := range b.Compared {
		w.removeAll(sinkPrefix(tableReplayBase, name))
	}
}

// absent writes who is absent from now on, and what the logs of those hold that come back.
func (w *writer) absent(b *Batch) error {
	for _, a := range b.Absent {
		if err := w.absences.begin(a); err != nil {
			return err
		}
	}
	for _, h := range b.Held {
		isOf := func(a Absence) bool { return a.Subscription == h.Subscription }
		if !slices.ContainsFunc(w.absences.saved.byStream[h.Stream], isOf) && !slices.ContainsFunc(b.Absent, isOf) {
			continue // it misses nothing
		}
		if err := w.absences.hold(h); err != nil {
			return err
		}
	}
	return nil
}

// heard writes what was heard through sinks' brokers.
func (w *writer) heard(all map[string][]byte) {
	for name, heard := range all {
		if len(heard) == 0 {
			w.remove(heardKey(name))
			continue
		}
		w.set(heardKey(name), heard)
	}
}

// streams writes what streams are of, the last position of each, and which are over.
func (w *writer) streams(b *Batch) {
	for _, stream := range b.Resources {
		w.set(resourceKey(stream.String()), appendResource(nil, stream.Resource))
	}
	for name, stream := range w.byName {
		if stream.position != (change.Position{}) {
			w.set(positionKey(name), appendPosition(nil, stream.position))
		}
		if stream.ended != nil {
			w.set(endedKey(name), stream.ended.value())
		}
	}
	for _, stream := range b.Over {
		if w.drop(stream); !b.OnDisk {
			w.remove(resourceKey(stream))
			w.remove(definedKey(stream))
		}
	}
}

// drop forgets the stream's position and inventory, and what is kept of its objects.
func (w *writer) drop(stream string) {
	dropObjects(w.rows, stream)
	w.remove(positionKey(stream))
	w.remove(endedKey(stream))
	w.removeAll(inventoryPrefix(stream))
}

// leave ends the subscription, with what is owed and missed.
func (w *writer) leave(subscription Subscription) {
	w.absences.end(subscription)
	for _, table := range pendingTables() {
		w.removeAll(append(append(sinkPrefix(table, subscription.Sink), subscription.Stream...), terminator))
	}
	w.remove(subscriptionKey(subscription))
}

// forget removes all that is known of a sink.
func (w *writer) forget(sinkName string) {
	w.saved = w.absences.saved.load
	for _, table := range []byte{tableSubscription, tablePending, tableLimited, tableSpool, tableReplayBase, tableAbsent, tableMissed, tableFresh} {
		w.removeAll(sinkPrefix(table, sinkName))
	}
	for _, key := range [][]byte{spooledKey(sinkName), carriedKey(sinkName), markKey(sinkName), heardKey(sinkName)} {
		w.remove(key)
	}
}

// stream finds what the batch has of the stream. Nearly always all records of a stream share the pointer, which saves
// making the name again.
func (w *writer) stream(stream *change.Stream) *writtenStream {
	if known := w.byPointer[stream]; known != nil {
		return known
	}
	name := stream.String()
	if w.byName[name] == nil {
		w.byName[name] = &writtenStream{name: name, prefix: inventoryPrefix(name), objects: streamPrefix(tableObject, name)}
	}
	w.byPointer[stream] = w.byName[name]
	return w.byName[name]
}

// end notes a delete beside a comparison.
func (w *writer) end(stream *writtenStream, rec *change.Record) error {
	position := rec.Position
	if rec.Op != change.Deleted || !position.Compared() || position.Complete {
		return nil
	}
	if stream.ended == nil {
		saved, err := readEnded(w.db, stream.name)
		if err != nil {
			return err
		}
		stream.ended = &saved
	}
	if stream.ended.version != position.ResourceVersion {
		stream.ended.version, stream.ended.uids = position.ResourceVersion, nil
	}
	stream.ended.uids = append(stream.ended.uids, rec.UID)
	return nil
}
