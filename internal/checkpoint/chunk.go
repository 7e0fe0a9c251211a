package checkpoint

import (
	"encoding/binary"
	"fmt"

	"github.com/kubecdc/kubecdc/internal/change"
)

// A chunk is a version, the number of its records and their length in bytes, both varints, and one zstd frame (RFC
// 8878): a text of JSON with the streams and snapshots that the records name by place, and then the records.
const chunkVersion = 1

// The flags of a record in a chunk.
const (
	hasObject = 1 << iota
	hasSnapshot
	_
	_
	finalStateUnknown
	hasReceived
	hasBefore
	isLast
	isWithheld
	hasActor
	isBeside
	hasInvolved
)

// shared is what the records of a chunk have in common.
type shared struct {
	Streams   []change.Stream   `json:"streams"`
	Forms     []string          `json:"forms,omitempty"` // of the streams' records; none in chunks of earlier versions
	Snapshots []change.Snapshot `json:"snapshots,omitempty"`
}

// chunkWriter collects records.
type chunkWriter struct {
	shared
	forms     func(*change.Stream) string
	streams   map[change.Stream]int
	snapshots map[*change.Snapshot]int
	body      []byte
}

func (w *chunkWriter) record(rec *change.Record) {
	w.body = append(w.body, byte(rec.Op))
	w.body = binary.AppendUvarint(w.body, flagsOf(rec))
	w.body = binary.AppendUvarint(w.body, uint64(w.stream(rec.Stream)))
	for _, text := range []string{rec.Key.Namespace, rec.Key.Name, rec.UID, rec.ResourceVersion, rec.Sink, rec.Epoch} {
		w.body = appendText(w.body, text)
	}
	if !rec.Received.IsZero() {
		w.body = binary.AppendVarint(w.body, rec.Received.UnixNano())
	}
	if rec.Snapshot != nil {
		w.body = binary.AppendUvarint(w.body, uint64(w.snapshot(rec)))
	}
	if rec.Object != nil {
		w.body = appendText(w.body, rec.Object)
	}
	if rec.Before != nil {
		w.body = appendText(w.body, rec.Before)
	}
	if rec.Withheld != "" {
		w.body = appendText(w.body, rec.Withheld)
	}
	if rec.Actor != nil {
		w.body = appendText(w.body, rec.Actor)
	}
	if rec.Involved != nil {
		w.body = appendText(w.body, rec.Involved)
	}
}

func flagsOf(rec *change.Record) (flags uint64) {
	set := func(flag uint64, is bool) {
		if is {
			flags |= flag
		}
	}
	set(hasObject, rec.Object != nil)
	set(hasSnapshot, rec.Snapshot != nil)
	set(finalStateUnknown, rec.FinalStateUnknown)
	set(hasReceived, !rec.Received.IsZero())
	set(hasBefore, rec.Before != nil)
	set(isLast, rec.Last)
	set(isWithheld, rec.Withheld != "")
	set(hasActor, rec.Actor != nil)
	set(isBeside, rec.Beside)
	set(hasInvolved, rec.Involved != nil)
	return flags
}

// stream is the place of the stream among those of the chunk.
func (w *chunkWriter) stream(stream *change.Stream) int {
	at, found := w.streams[*stream]
	if !found {
		at = len(w.Streams)
		w.streams[*stream] = at
		w.Streams = append(w.Streams, *stream)
		if w.forms != nil {
			w.Forms = append(w.Forms, w.forms(stream))
		}
	}
	return at
}

// snapshot is the place of the record's snapshot. The counts are final, and may be read, in the record of the end
// alone, which has a place of its own therefore.
func (w *chunkWriter) snapshot(rec *change.Record) int {
	s := rec.Snapshot
	at, found := w.snapshots[s]
	if found && rec.Op != change.SnapshotEnd {
		return at
	}
	kept := change.Snapshot{
		ID: s.ID, Reason: s.Reason, From: s.From, Since: s.Since, ResourceVersion: s.ResourceVersion, Epoch: s.Epoch,
		Sinks: s.Sinks, Limits: s.Limits,
	}
	if rec.Op == change.SnapshotEnd {
		kept.Counts = s.Counts
	}
	w.snapshots[s] = len(w.Snapshots)
	w.Snapshots = append(w.Snapshots, kept)
	return len(w.Snapshots) - 1
}

// chunkSize is the length in bytes and the number of the records in a chunk.
func chunkSize(value []byte) (raw, records int, err error) {
	if len(value) == 0 || value[0] != chunkVersion {
		return 0, 0, fmt.Errorf("a chunk: %w", errValue)
	}
	value = value[1:]
	n, first := binary.Uvarint(value)
	if first <= 0 {
		return 0, 0, fmt.Errorf("a chunk: %w", errValue)
	}
	size, second := binary.Uvarint(value[first:])
	if second <= 0 || size > maxFrame || n > size {
		return 0, 0, fmt.Errorf("a chunk: %w", errValue)
	}
	return int(size), int(n), nil
}
