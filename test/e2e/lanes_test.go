package e2e

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// newScattered puts a trial's events into a topic of three partitions.
func newScattered() *trial {
	t := newTrial()
	partitioner := kgo.StickyKeyPartitioner(nil).ForTopic("t.configmaps")
	for i := range t.events {
		e := &t.events[i]
		s := &seat{topic: "t.configmaps", wanted: "t.configmaps", partitions: 3, offset: int64(i), key: e.key()}
		if e.UID == "" {
			s.key = "/" + e.op()
		}
		if e.op() == "deleted" {
			s.tombstones = 1
		}
		s.partition = partitioner.Partition(&kgo.Record{Key: []byte(s.key)}, s.partitions)
		if e.Snapshot != "" {
			e.Snapshot = "11.1"
		}
		e.seat = s
	}
	return t
}

func TestJudgeOfPartitions(t *testing.T) {
	right := newScattered()
	last := right.events[3] // the end of the snapshot may be read after everything else
	right.events = append(append(right.events[:3:3], right.events[4:]...), last)
	if faults := right.faults(); faults != "" {
		t.Error(faults)
	}
	spoiled(t, newScattered, map[string]func(*trial){
		"version 12 is missing":                     func(t *trial) { t.drop("updated", 12) },
		"version 5 is missing":                      func(t *trial) { t.drop("replaced", 5); t.drop("updated", 13) },
		"the id is at place 5 already":              func(t *trial) { t.events = append(t.events, t.events[4]) },
		"version 12 follows version 15":             func(t *trial) { t.events[4], t.events[6] = t.events[6], t.events[4] },
		"position 15 of its partition":              func(t *trial) { t.events[4], t.events[6] = t.events[6], t.events[4] },
		"0 deletes of an object that is gone: true": func(t *trial) { t.drop("deleted", 18) },
		"ends within a reconcile or a gap":          func(t *trial) { t.drop("snapshot.end", 11); t.drop("replaced", 10) },
		"the key is other":                          func(t *trial) { t.events[4].seat.key = "other" },
		"the topic is other":                        func(t *trial) { t.events[4].seat.topic = "other" },
		"other producers take":                      func(t *trial) { t.events[4].seat.partition = (t.events[4].seat.partition + 1) % 3 },
		"0 tombstones behind the delete":            func(t *trial) { t.events[7].seat.tombstones = 0 },
	})
}
