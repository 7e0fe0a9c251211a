package verify

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/format/encode"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// selfTold is a log of two partitions that says which objects it had.
type selfTold struct {
	t       *testing.T
	encoder *encode.Encoder
	stored  []*sink.Stored
	objects map[change.Key]change.Digest
	last    *change.Proof // of what was resolved last
}

func newSelfTold(t *testing.T, cluster string) *selfTold {
	options := encode.Options{Cluster: "dev", ClusterUID: cluster, Format: "debezium", Transport: encode.Kafka}
	return &selfTold{t: t, encoder: encode.NewEncoder(options), objects: map[change.Key]change.Digest{}}
}

func (s *selfTold) tell(rec *change.Record, partitions ...int32) {
	s.t.Helper()
	messages, err := s.encoder.Encode(s.t.Context(), nil, rec)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, m := range messages {
		for _, number := range partitions {
			stored := &sink.Stored{Place: fmt.Sprint("message ", len(s.stored)), Destination: "pods", Partition: number, Key: m.Key, Headers: slices.Clone(m.Headers), Value: m.Value}
			stored.Headers = append(stored.Headers, sink.Header{Name: sink.HeaderID, Value: m.ID})
			s.stored = append(s.stored, stored)
		}
	}
}

func (s *selfTold) object(op change.Op, name, version string, partition int32) {
	rec := record(op, name, version)
	s.tell(rec, partition)
	if delete(s.objects, rec.Key); op != change.Deleted {
		s.objects[rec.Key] = change.DigestOf(rec.Key, rec.UID, version)
	}
}

func (s *selfTold) resolved(at int64) {
	s.tell(&change.Record{Stream: pods(), Op: change.Resolved, ResourceVersion: fmt.Sprint(at), Received: time.UnixMilli(at), Remarks: &change.Remarks{Proof: s.last}}, 0, 1)
	var digest change.Digest
	for _, object := range s.objects {
		digest = digest.Plus(object)
	}
	s.last = &change.Proof{Digest: digest, Time: time.UnixMilli(at)}
}

// threeTimes says three times which objects there are; of the last nothing is said.
func (s *selfTold) threeTimes() {
	s.object(change.Added, "a", "1", 0)
	s.object(change.Added, "b", "2", 1)
	s.resolved(10)
	s.object(change.Deleted, "a", "11", 0)
	s.object(change.Added, "c", "12", 1)
	s.resolved(20)
	s.object(change.Updated, "b", "21", 1)
	s.object(change.Added, "e", "22", 0)
	s.resolved(30)
	s.resolved(40)
}

func reportOf(t *testing.T, stored []*sink.Stored) DigestReport {
	t.Helper()
	d := NewDigests()
	for _, m := range stored {
		must(t, d.Take(m))
	}
	return d.Report()
}

// TestI4ALogSaysWhetherItIsWhole: whichever record is taken out of it, or comes again, the first digest behind it is
// another one, once one was right; and that alone.
func TestI4ALogSaysWhetherItIsWhole(t *testing.T) {
	log := newSelfTold(t, uid)
	log.threeTimes()
	if report := reportOf(t, log.stored); !report.Equal || report.Digests != 3 {
		t.Errorf("of a whole log is said %+v", report)
	}
	for out := range log.stored {
		id, err := change.ParseID(log.stored[out].Header(sink.HeaderID))
		must(t, err)
		var want []DigestDiffers
		isObject := id.Op.OfObject() && log.stored[out].Value != nil
		if at := time.UnixMilli(20).UTC(); isObject && id.ResourceVersion > "20" {
			want = []DigestDiffers{{After: at, At: time.UnixMilli(30).UTC(), Times: 1}}
		} else if isObject && id.ResourceVersion > "10" {
			want = []DigestDiffers{{After: time.UnixMilli(10).UTC(), At: at, Times: 2}}
		}
		found := reportOf(t, slices.Delete(slices.Clone(log.stored), out, out+1)).Mismatch
		for i := range found {
			found[i] = DigestDiffers{After: found[i].After.UTC(), At: found[i].At.UTC(), Times: found[i].Times}
		}
		if id.ResourceVersion == "2" { // it is as it should be when b has changed: the log may have begun there
			want = nil
		}
		if id.ResourceVersion == "1" {
			want = nil // and when it is gone
		}
		if !slices.Equal(found, want) {
			t.Errorf("without %s is said %+v, want %+v", &id, found, want)
		}
		again := slices.Insert(slices.Clone(log.stored), out+1, log.stored[out])
		if report := reportOf(t, again); !report.Equal || report.Digests != 3 {
			t.Errorf("with %s once more is said %+v", &id, report)
		}
	}
}

// TestI4ALogThatBeginsNowhereIsNotCalledEqual: what is never right is told.
func TestI4ALogThatBeginsNowhereIsNotCalledEqual(t *testing.T) {
	log := newSelfTold(t, uid)
	log.object(change.Added, "quiet", "1", 0)
	log.threeTimes()
	if report := reportOf(t, log.stored[1:]); report.Equal || !report.Mismatch[0].After.IsZero() || report.Mismatch[0].Times != 3 {
		t.Errorf("of a log without its beginning is said %+v", report)
	}
}

// TestI4OfTwoClustersInOneTopicEachIsWhole: an object of one is none of the other.
func TestI4OfTwoClustersInOneTopicEachIsWhole(t *testing.T) {
	one, other := newSelfTold(t, uid), newSelfTold(t, "c1c1c1c1-0000-0000-0000-000000000000")
	one.threeTimes()
	other.object(change.Added, "b", "5", 1)
	other.threeTimes()
	var both []*sink.Stored
	for at := range max(len(one.stored), len(other.stored)) {
		for _, log := range []*selfTold{one, other} {
			if at < len(log.stored) {
				both = append(both, log.stored[at])
			}
		}
	}
	if report := reportOf(t, both); !report.Equal || report.Digests != 6 {
		t.Errorf("of two clusters is said %+v", report)
	}
}

// TestARejectedRecordLeavesOpenWhatTheLogHas: it may have been a delete. What the log has is known again with the
// object's next record.
func TestARejectedRecordLeavesOpenWhatTheLogHas(t *testing.T) {
	log := newSelfTold(t, uid)
	log.object(change.Added, "a", "1", 0)
	log.resolved(10)
	gone := record(change.Deleted, "a", "11")
	log.tell(change.NoteOf(gone, "too large", ""), 0)
	delete(log.objects, gone.Key)
	log.resolved(20)
	log.resolved(30)
	again := log.stored[len(log.stored)-2:]
	log.object(change.Added, "a", "31", 0)
	log.stored = append(log.stored, again...)
	log.resolved(40)
	log.resolved(50)
	if report := reportOf(t, log.stored); !report.Equal || report.Digests != 2 {
		t.Errorf("where a delete was rejected is said %+v", report)
	}
}
