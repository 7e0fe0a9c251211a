package nats

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/test/sinktest"
)

// setting is a value of one field of a stream's configuration, and what becomes of a sink with such a stream.
type setting struct {
	set     func(*jetstream.StreamConfig)
	refused string // part of the refusal; "" is that the sink works
	after   bool   // it is set when the stream is there
	unread  bool   // what it does to consumers keeps readers from reading, which say so
}

// harmless are values with which the sink works.
func harmless(sets ...func(*jetstream.StreamConfig)) (all []setting) {
	for _, set := range sets {
		all = append(all, setting{set: set})
	}
	return all
}

// settings are all fields of a stream's configuration. Those without a setting are ours, or need a cluster of servers
// or a mirror.
func settings() map[string][]setting {
	const prefix = "$" // is that of the case's subjects
	type config = jetstream.StreamConfig
	return map[string][]setting{
		"Name": nil, "Description": nil, "Template": nil, "Placement": nil, "Replicas": nil, "MirrorDirect": nil,
		"Subjects": {
			{set: func(c *config) { c.Subjects = []string{c.Subjects[0], prefix + ".more"} }},
			{set: func(c *config) { c.Subjects = []string{prefix + ".only"} }, refused: "does not cover"},
		},
		"Retention": {
			{set: func(c *config) { c.Retention = jetstream.WorkQueuePolicy }, refused: "it forgets what a consumer took (work-queue retention), so that nobody can find there what a crash left undone: " +
				"name a stream with limits retention, and let the work queue take it in as a source"},
			{set: func(c *config) { c.Retention = jetstream.InterestPolicy }, refused: "it forgets what no consumer waits for (interest retention), so that nobody can find there what a crash left undone: " +
				"name a stream with limits retention"},
		},
		"MaxConsumers": {{set: func(c *config) { c.MaxConsumers = 1 }, unread: true}},
		"MaxMsgs":      harmless(func(c *config) { c.MaxMsgs = 10000 }, func(c *config) { c.MaxMsgs, c.Discard = 10000, jetstream.DiscardNew }),
		"MaxBytes":     harmless(func(c *config) { c.MaxBytes = 1 << 30 }, func(c *config) { c.MaxBytes, c.Discard = 1<<30, jetstream.DiscardNew }),
		"Discard":      harmless(func(c *config) { c.Discard = jetstream.DiscardNew }),
		"DiscardNewPerSubject": {{refused: "it takes no change of an object that has its share of messages (discard_new_per_subject): set discard_new_per_subject to false", set: func(c *config) {
			c.Discard, c.DiscardNewPerSubject, c.MaxMsgsPerSubject = jetstream.DiscardNew, true, 1
		}}},
		"MaxAge":            harmless(func(c *config) { c.MaxAge = time.Hour }),
		"MaxMsgsPerSubject": harmless(func(c *config) { c.MaxMsgsPerSubject = 1 }),
		"MaxMsgSize":        harmless(func(c *config) { c.MaxMsgSize = 1 << 16 }),
		"Storage":           harmless(func(c *config) { c.Storage = jetstream.MemoryStorage }),
		"NoAck":             {{set: func(c *config) { c.NoAck = true }, refused: "it acknowledges nothing: set no_ack to false"}},
		"Duplicates":        harmless(func(c *config) { c.Duplicates = time.Hour }, func(c *config) { c.Duplicates = 100 * time.Millisecond }),
		"Mirror": {{refused: "it mirrors stream ORIGIN: name the origin, or another stream", set: func(c *config) {
			c.Mirror, c.Subjects = &jetstream.StreamSource{Name: "ORIGIN"}, nil
		}}},
		"Sources":     {{set: func(c *config) { c.Sources = []*jetstream.StreamSource{{Name: "ORIGIN"}} }, refused: "it takes in stream ORIGIN: give the exporter a stream of its own"}},
		"Sealed":      {{set: func(c *config) { c.Sealed = true }, refused: "it is sealed: name another stream", after: true}},
		"DenyDelete":  harmless(func(c *config) { c.DenyDelete = true }),
		"DenyPurge":   harmless(func(c *config) { c.DenyPurge = true }),
		"AllowRollup": harmless(func(c *config) { c.AllowRollup = true }),
		"Compression": harmless(func(c *config) { c.Compression = jetstream.S2Compression }),
		"FirstSeq":    harmless(func(c *config) { c.FirstSeq = 1000 }),
		"SubjectTransform": {
			{refused: "subject_transform", set: func(c *config) {
				c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: c.Subjects[0], Destination: "moved.>"}
			}},
			{refused: "subject_transform", set: func(c *config) {
				c.SubjectTransform = &jetstream.SubjectTransformConfig{Destination: "moved.>"}
			}},
			{refused: "subject_transform", set: func(c *config) {
				c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: strings.Replace(c.Subjects[0], ">", "3", 1), Destination: "moved.to"}
			}},
			{refused: "subject_transform", after: true, set: func(c *config) {
				c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: ">", Destination: "moved.>"}
			}},
			{set: func(c *config) {
				c.Subjects = append(c.Subjects, prefix+".others.>")
				c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: prefix + ".others.>", Destination: "moved.>"}
			}},
		},
		"RePublish": harmless(
			func(c *config) { c.RePublish = &jetstream.RePublish{Source: ">", Destination: "copies.>"} },
			func(c *config) { c.RePublish = &jetstream.RePublish{Destination: "heads.>", HeadersOnly: true} }),
		"AllowDirect": harmless(func(c *config) { c.AllowDirect = true }),
		"ConsumerLimits": {
			{set: func(c *config) { c.ConsumerLimits = jetstream.StreamConsumerLimits{InactiveThreshold: time.Second} }, unread: true},
			{set: func(c *config) { c.ConsumerLimits = jetstream.StreamConsumerLimits{MaxAckPending: 1} }},
		},
		"Metadata":    harmless(func(c *config) { c.Metadata = map[string]string{"owner": "x"} }),
		"AllowMsgTTL": harmless(func(c *config) { c.AllowMsgTTL = true }),
		"SubjectDeleteMarkerTTL": {
			{refused: "subject_delete_marker_ttl", set: func(c *config) { c.SubjectDeleteMarkerTTL, c.AllowMsgTTL, c.AllowRollup = time.Minute, true, true }},
			{refused: "subject_delete_marker_ttl", after: true, set: func(c *config) {
				c.SubjectDeleteMarkerTTL, c.AllowMsgTTL, c.AllowRollup, c.MaxAge = time.Minute, true, true, time.Hour
			}},
		},
		"AllowMsgCounter":    {{set: func(c *config) { c.AllowMsgCounter = true }, refused: "it takes counters only: name another stream"}},
		"AllowAtomicPublish": harmless(func(c *config) { c.AllowAtomicPublish = true }),
		"AllowMsgSchedules":  harmless(func(c *config) { c.AllowMsgSchedules, c.AllowMsgTTL, c.AllowRollup = true, true, true }),
		"PersistMode":        {{set: func(c *config) { c.PersistMode = jetstream.AsyncPersistMode }, refused: "it acknowledges what it has not stored yet (persist_mode async): set persist_mode to default"}},
		"AllowBatchPublish":  harmless(func(c *config) { c.AllowBatchPublish = true }),
	}
}

// TestEverySettingOfAStream that the client library knows works with a sink, or is refused by name, at the start and by
// check.
func TestEverySettingOfAStream(t *testing.T) {
	known := settings()
	for i := range reflect.TypeFor[jetstream.StreamConfig]().NumField() {
		name := reflect.TypeFor[jetstream.StreamConfig]().Field(i).Name
		if _, is := known[name]; !is {
			t.Errorf("the client library has %s of streams: does it change what a sink relies on?", name)
		}
		delete(known, name)
	}
	for name := range known {
		t.Errorf("the client library has no %s of streams any more", name)
	}
	s := startServer(t)
	s.create(jetstream.StreamConfig{Name: "ORIGIN", Subjects: []string{"origin"}})
	for name, all := range settings() {
		for i, one := range all {
			t.Run(fmt.Sprintf("%s %d", name, i), func(t *testing.T) {
				s := &testServer{t, s.Server}
				one.try(t, s, fmt.Sprintf("%s%d", name, i))
			})
		}
	}
}

// try uses a sink with a stream of the name that has the setting.
func (one *setting) try(t *testing.T, s *testServer, name string) {
	js, ctx := s.admin()
	config := jetstream.StreamConfig{Name: name, Subjects: []string{name + ".k8s.>"}}
	options := s.options()
	options.Stream, options.Subjects = name, slices.Clone(config.Subjects)
	if one.after {
		s.create(config)
	}
	one.set(&config)
	for i := range config.Subjects {
		config.Subjects[i] = strings.Replace(config.Subjects[i], "$", name, 1)
	}
	if transform := config.SubjectTransform; transform != nil {
		transform.Source = strings.Replace(transform.Source, "$", name, 1)
	}
	opened := newSink(t, options)
	var err error
	if one.after {
		openAt(t, opened, "")
		_, err = js.UpdateStream(ctx, config)
	} else {
		_, err = js.CreateStream(ctx, config)
	}
	noError(t, err)
	if one.refused != "" {
		if err := openError(t, options, ""); !strings.Contains(err.Error(), one.refused) {
			t.Errorf("open says %v", err)
		}
		if _, err := newSink(t, options).Check(within(t)); err == nil || !strings.Contains(err.Error(), one.refused) {
			t.Errorf("check says %v", err)
		}
		if one.after {
			opened.looked = time.Time{}
			maker := &sinktest.Maker{Destination: func(int) string { return name + ".k8s.x" }}
			_, err := opened.Write(within(t), maker.Batch(1))
			if err == nil || !strings.Contains(err.Error(), one.refused) {
				t.Errorf("the running sink says %v", err)
			}
		}
		return
	}
	if _, err := newSink(t, options).Check(within(t)); err != nil {
		t.Error(err)
	}
	noError(t, use(t, options, func(number int) string { return fmt.Sprintf("%s.k8s.%d", name, number) }))
	if err := read(t, options, 48); err != nil && !one.unread {
		t.Error(err)
	}
}
