package change

import (
	"crypto/sha256"
	"encoding/hex"
)

// MaxNamed is how many bytes of a name a note has at most. Names of most kinds have 253; those of Roles are bounded by
// etcd alone, and in an id, a subject and a header each byte may take three.
const MaxNamed = 512

// namedByHash begins what stands in a note for a name that is too long. No name has a "%" in it (apimachinery, path
// segment names).
const namedByHash = "%sha256-"

// NoteOf is the gap record that stands for a rejected one. It is small whatever the record is, so that every sink takes
// it.
func NoteOf(rec *Record, reason, letter string) *Record {
	note := *rec
	note.Op, note.Object, note.Before, note.Withheld, note.FinalStateUnknown = Gap, nil, nil, "", false
	note.Actor, note.Involved, note.Changed, note.ChangedCut, note.Patch, note.Base = nil, nil, nil, false, nil, ""
	note.Key, note.UID = boundedKey(rec.Key, MaxNamed), bounded(rec.UID, MaxNamed)
	note.ResourceVersion = bounded(rec.ResourceVersion, MaxNamed)
	note.Remarks = &Remarks{Rejected: reason, Letter: letter}
	note.Snapshot = &Snapshot{
		ID: note.ResourceVersion, Reason: Policy, From: note.ResourceVersion, ResourceVersion: note.ResourceVersion,
	}
	return &note
}

// ShorterNote is the note with the hash of its name, for a sink that does not take the name itself. It is nil where the
// note has that already.
func ShorterNote(note *Record) *Record {
	if note.Remarks == nil || note.Key.Name == "" || isHash(note.Key.Name) {
		return nil
	}
	hashed := *note
	hashed.Key = note.Key.Hashed()
	return &hashed
}

// NotesOf are the ids that the note of the record may have.
func NotesOf(id ID) [2]ID {
	id.Op, id.UID, id.ResourceVersion = Gap, bounded(id.UID, MaxNamed), bounded(id.ResourceVersion, MaxNamed)
	id.Snapshot, id.Key = id.ResourceVersion, boundedKey(id.Key, MaxNamed)
	hashed := id
	hashed.Key = hashed.Key.Hashed()
	return [2]ID{id, hashed}
}

// Hashed is the key that the shortest note of the object has.
func (k Key) Hashed() Key {
	if !isHash(k.Name) {
		k.Name = hashOf(k.Name)
	}
	return k
}

func boundedKey(key Key, most int) Key {
	return Key{Namespace: bounded(key.Namespace, most), Name: bounded(key.Name, most)}
}

// bounded is the text, or its hash where it is longer.
func bounded(text string, most int) string {
	if len(text) <= most || isHash(text) {
		return text
	}
	return hashOf(text)
}

func isHash(text string) bool {
	return len(text) == len(namedByHash)+2*sha256.Size && text[:len(namedByHash)] == namedByHash
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return namedByHash + hex.EncodeToString(sum[:])
}
