package nats

import (
	"errors"
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

	mostHistory = 64
)

// useBucket fills in what follows from the bucket's name.
func (o *Options) useBucket() {
	if o.Stream == "" {
		o.Stream = bucketStream + o.KV
	}
	if len(o.Subjects) == 0 {
		o.Subjects = []string{bucketSubject + o.KV + ".>"}
	}
	if o.History == 0 {
		o.History = 1
	}
}

func (o *Options) checkBucket() error {
	if o.KV == "" {
		if o.History != 0 {
			return errors.New("option History is set without KV: set both or none")
		}
		return nil
	}
	var problems []error
	if strings.ContainsFunc(o.KV, func(r rune) bool { return !inBucketName(r) }) {
		problems = append(problems, fmt.Errorf("option KV %q is not a bucket's name: it has letters, digits, '-' and '_'", o.KV))
	}
	if subject := bucketSubject + o.KV + ".>"; o.Stream != bucketStream+o.KV || len(o.Subjects) != 1 || o.Subjects[0] != subject {
		problems = append(problems, errors.New("options Stream and Subjects follow from KV: leave them out"))
	}
	if o.History < 1 || o.History > mostHistory {
		problems = append(problems, fmt.Errorf("option History is %d: use 1 to %d", o.History, mostHistory))
	}
	if o.MaxAge != 0 {
		problems = append(problems, errors.New("option MaxAge is set with KV: keys of objects that live must not expire: leave it out"))
	}
	if o.Shared {
		problems = append(problems, errors.New("option Shared is set with KV: a bucket has one writer: set one of both"))
	}
	return errors.Join(problems...)
}

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
func (s *stream) objectionToKey(m *sink.Message) error {
	if key, found := strings.CutPrefix(m.Destination, s.keys); s.keys != "" && (!found || !validKey(key)) {
		return fmt.Errorf("publish to subject %q: it is not a key of the bucket: a key has letters, digits, and -/_=. as in a path", m.Destination)
	}
	return nil
}

// deletes says whether the message takes its key out of the bucket.
func (s *stream) deletes(m *sink.Message) bool {
	return s.keys != "" && m.Op == change.Deleted.String()
}
