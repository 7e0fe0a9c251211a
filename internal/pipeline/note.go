package pipeline

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/kubecdc/kubecdc/internal/change"
)

// maxNamed is how many bytes of a name a note has at most. Names of most kinds have 253; those of Roles are bounded by
// etcd alone, and in an id, a subject and a header each byte may take three.
const maxNamed = 512

// namedByHash begins what stands in a note for a name that is too long. No name has a "%" in it (apimachinery, path
// segment names).
const namedByHash = "%sha256-"

// noteOf is the gap record that stands for a rejected one. It is small whatever the record is, so that every sink takes
// it.
func noteOf(rec *change.Record, reason, letter string) *change.Record {
	note := *rec
	note.Op, note.Object, note.Before, note.Withheld = change.Gap, nil, nil, ""
	note.Key, note.UID = boundedKey(rec.Key, maxNamed), bounded(rec.UID, maxNamed)
	note.ResourceVersion = bounded(rec.ResourceVersion, maxNamed)
	note.Marks = &change.Marks{Rejected: reason, Letter: letter}
	note.Snapshot = &change.Snapshot{
		ID: note.ResourceVersion, Reason: change.Policy, From: note.ResourceVersion, ResourceVersion: note.ResourceVersion,
	}
	return &note
}

// shorter is the note with the hash of its name, for a sink that does not take the name itself; nil where it has that
// already.
func shorter(note *change.Record) *change.Record {
	if note.Marks == nil || note.Key.Name == "" || isHash(note.Key.Name) {
		return nil
	}
	hashed := *note
	hashed.Key.Name = hashOf(note.Key.Name)
	return &hashed
}

// notesOf are the ids that the note of the record may have.
func notesOf(id change.ID) [2]change.ID {
	id.Op, id.UID, id.ResourceVersion = change.Gap, bounded(id.UID, maxNamed), bounded(id.ResourceVersion, maxNamed)
	id.Snapshot, id.Key = id.ResourceVersion, boundedKey(id.Key, maxNamed)
	hashed := id
	if !isHash(id.Key.Name) {
		hashed.Key.Name = hashOf(id.Key.Name)
	}
	return [2]change.ID{id, hashed}
}

func boundedKey(key change.Key, most int) change.Key {
	return change.Key{Namespace: bounded(key.Namespace, most), Name: bounded(key.Name, most)}
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
