package nats

import (
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// suitable refuses streams that would never be a log of ours.
func (o *Options) suitable(config *jetstream.StreamConfig) error {
	if err := o.fit("open", config); err != nil {
		return err
	}
	if o.Whole && len(bucketNotes(config)) > 0 {
		return permanent("open stream %s: it forgets values, by their age or at a limit: give it no max_age, and no limit or discard new", config.Name)
	}
	if o.Uncompacted != "" && config.MaxMsgsPerSubject > 0 {
		return permanent("open stream %s: it keeps %d messages of each subject, and %s, or name another stream", config.Name, config.MaxMsgsPerSubject, o.Uncompacted)
	}
	if o.Shared && config.Duplicates < window {
		return permanent("open stream %s: it knows ids for %s, and a shared stream needs %s: raise its duplicate_window",
			config.Name, config.Duplicates, window)
	}
	for _, subject := range o.Subjects {
		if !coveredByAny(config.Subjects, subject) {
			return permanent("open stream %s: it takes %q, which does not cover %q: give each cluster a stream of its own with the key stream, "+
				"or, where nobody else writes to it or all say that it is shared, add this to the stream's subjects",
				config.Name, config.Subjects, subject)
		}
	}
	return nil
}

// fit refuses settings with which no stream is a log of ours, also where a person changes them while we write.
func (o *Options) fit(verb string, config *jetstream.StreamConfig) error {
	if what, remedy := o.unfit(config); what != "" {
		return permanent("%s stream %s: %s: %s", verb, config.Name, what, remedy)
	}
	return nil
}

// unfit says what keeps the stream from being a log, and what a person can do. What it does not name of a stream's
// settings does no harm: a test holds it for each.
func (o *Options) unfit(config *jetstream.StreamConfig) (what, remedy string) {
	switch {
	case config.SubjectTransform != nil && slices.ContainsFunc(o.Subjects, func(ours string) bool {
		return config.SubjectTransform.Source == "" || Overlap(config.SubjectTransform.Source, ours)
	}):
		return "it keeps messages under other subjects than they have (subject_transform), so that nobody can find there what a crash left undone",
			"remove its subject_transform, and let another stream take it in as a source with one"
	case config.SubjectDeleteMarkerTTL > 0:
		return "its server writes markers into it (subject_delete_marker_ttl), which say of objects that they are gone", "set its subject_delete_marker_ttl to 0"
	case config.Mirror != nil:
		return "it mirrors stream " + config.Mirror.Name, "name the origin, or another stream"
	case len(config.Sources) > 0:
		return "it takes in stream " + config.Sources[0].Name, "give the exporter a stream of its own"
	case config.Sealed:
		return "it is sealed", "name another stream"
	case config.NoAck:
		return "it acknowledges nothing", "set no_ack to false"
	case config.AllowMsgCounter:
		return "it takes counters only", "name another stream"
	case config.Retention == jetstream.WorkQueuePolicy:
		return "it forgets what a consumer took (work-queue retention), so that nobody can find there what a crash left undone",
			"name a stream with limits retention, and let the work queue take it in as a source"
	case config.Retention == jetstream.InterestPolicy:
		return "it forgets what no consumer waits for (interest retention), so that nobody can find there what a crash left undone",
			"name a stream with limits retention"
	case config.DiscardNewPerSubject:
		return "it takes no change of an object that has its share of messages (discard_new_per_subject)",
			"set discard_new_per_subject to false"
	case config.PersistMode == jetstream.AsyncPersistMode:
		return "it acknowledges what it has not stored yet (persist_mode async)", "set persist_mode to default"
	}
	return "", ""
}
