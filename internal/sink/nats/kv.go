package nats

import (
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// A bucket is a stream whose subjects are keys (ADR-8). It is the only log of its sink, so its sequence is the mark;
// what a newer value of the same key replaced is gone from the log's tail, and the newer one proves it.
const (
	bucketStream  = "KV_"
	bucketSubject = "$KV."

	headerOperation = "KV-Operation"
	operationDelete = "DEL"
)

func inBucketName(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_'
}

// validKey says whether clients accept the key, which is what follows the bucket's name in a subject.
func validKey(key string) bool {
	return key != "" && !strings.ContainsFunc(key, func(r rune) bool { return !inBucketName(r) && !strings.ContainsRune("/=.", r) })
}

// bucketNotes are what a person may want to know of a bucket that is there already.
func bucketNotes(config *jetstream.StreamConfig) []string {
	var notes []string
	if config.MaxAge > 0 {
		notes = append(notes, fmt.Sprintf("bucket %s lets values expire after %s: it will lack objects that did not change for so long",
			strings.TrimPrefix(config.Name, bucketStream), config.MaxAge))
	}
	if config.Discard == jetstream.DiscardOld && (config.MaxBytes > 0 || config.MaxMsgs > 0) {
		notes = append(notes, fmt.Sprintf("bucket %s drops its oldest values at its limits (discard old): it will lack objects",
			strings.TrimPrefix(config.Name, bucketStream)))
	}
	return notes
}

// objectionToKey finds what clients of a bucket would not accept.
func (s *knownStream) objectionToKey(m *sink.Message) error {
	if key, found := strings.CutPrefix(m.Destination, s.keys); s.keys != "" && (!found || !validKey(key)) {
		return fmt.Errorf("publish to subject %q: it is not a key of the bucket: a key has letters, digits, and -/_=. as in a path", m.Destination)
	}
	return nil
}

// deletes says whether the message takes its key out of the bucket.
func (s *knownStream) deletes(m *sink.Message) bool {
	return s.keys != "" && m.Op == change.Deleted.String()
}
