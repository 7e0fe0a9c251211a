package verify

import (
	"fmt"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/format/encode"
	"github.com/kubecdc/kubecdc/internal/sink"
)

const uid = "0b6f3c1e-8a4d-4c39-9d2b-0a1b2c3d4e5f"

func pods() *change.Stream {
	return &change.Stream{Resource: change.Resource{Version: "v1", Name: "pods", Kind: "Pod"}}
}

// record is a record of the pod, whose uid is its name.
func record(op change.Op, name, version string) *change.Record {
	return &change.Record{
		Stream: pods(), Op: op, Key: change.Key{Namespace: "shop", Name: name}, UID: "u-" + name, ResourceVersion: version,
		Object: fmt.Appendf(nil, `{"metadata":{"name":%q,"resourceVersion":%q}}`, name, version), Received: time.UnixMilli(1000),
	}
}

// logOf is a log that was written in a format and read back.
func logOf(t *testing.T, format string, transport encode.Transport, records ...*change.Record) *Log {
	t.Helper()
	l := NewLog("")
	encoder := encode.NewEncoder(encode.Options{Cluster: "dev", ClusterUID: uid, Format: format, Transport: transport, Tombstones: transport == encode.Kafka})
	for i, rec := range records {
		messages, err := encoder.Encode(t.Context(), nil, rec)
		must(t, err)
		for _, m := range messages {
			stored := &sink.Stored{Place: fmt.Sprint("line ", i), Key: m.Key, Headers: m.Headers, Value: m.Value}
			if transport != encode.File {
				stored.Headers = append(stored.Headers, sink.Header{Name: sink.HeaderID, Value: m.ID})
			}
			must(t, l.Take(stored))
		}
	}
	return l
}

func listed(version string, names ...string) *List {
	list := &List{Stream: *pods(), Version: version, Objects: map[change.Key]Listed{}, Deletes: true}
	for i := 0; i < len(names); i += 2 {
		list.Objects[change.Key{Namespace: "shop", Name: names[i]}] = Listed{UID: "u-" + names[i], Version: names[i+1]}
	}
	return list
}

// TestVerifyNamesEachDifference in every format that carries an identity.
func TestVerifyNamesEachDifference(t *testing.T) {
	records := []*change.Record{
		record(change.Replaced, "same", "5"), record(change.Added, "old", "6"), record(change.Added, "gone", "7"), record(change.Added, "left", "8"),
		record(change.Deleted, "gone", "9"), record(change.Added, "later", "21"),
	}
	for _, f := range []struct {
		format    string
		transport encode.Transport
	}{
		{encode.FormatCloudEvents, encode.File}, {encode.FormatDebezium, encode.File}, {encode.FormatCloudEvents, encode.Kafka},
		{encode.FormatCloudEventsBinary, encode.NATS}, {encode.FormatDebezium, encode.Kafka}, {encode.FormatObject, encode.Kafka}, {encode.FormatObject, encode.NATS},
	} {
		t.Run(fmt.Sprint(f.format, f.transport), func(t *testing.T) {
			r := Compare(logOf(t, f.format, f.transport, records...), listed("20", "same", "5", "old", "12", "new", "11"))
			want := "{pods 20 3 1 1 1 1 1 0 [{extra pods shop left   u-left 8 } {missing pods shop new u-new 11   } {stale pods shop old u-old 12 u-old 6 }]}"
			if got := fmt.Sprint(r); got != want {
				t.Errorf("found %s\nwant  %s", got, want)
			}
		})
	}
}

func TestVerifyJudgesAsOfTheList(t *testing.T) {
	for name, c := range map[string]struct {
		records []*change.Record
		list    *List
		want    string // equal, missing, stale, extra, changing, unjudged
	}{
		"updated since":               {[]*change.Record{record(change.Added, "a", "5"), record(change.Updated, "a", "25")}, listed("20", "a", "5"), "0 0 0 0 1 0"},
		"deleted since":               {[]*change.Record{record(change.Added, "a", "5"), record(change.Deleted, "a", "25")}, listed("20", "a", "5"), "0 0 0 0 1 0"},
		"deleted before":              {[]*change.Record{record(change.Added, "a", "5"), record(change.Deleted, "a", "15")}, listed("20", "a", "16"), "0 1 0 0 0 0"},
		"a version that never was":    {[]*change.Record{record(change.Added, "a", "15")}, listed("20", "a", "5"), "0 0 1 0 0 0"},
		"width is no order of text":   {[]*change.Record{record(change.Added, "a", "9")}, listed("100", "a", "99"), "0 0 1 0 0 0"},
		"nothing at all":              {nil, listed("20"), "0 0 0 0 0 0"},
		"another name's object":       {[]*change.Record{record(change.Added, "a", "5")}, listed("20", "b", "6"), "0 1 0 1 0 0"},
		"a sync is what is":           {[]*change.Record{record(change.Sync, "a", "5")}, listed("20", "a", "5"), "1 0 0 0 0 0"},
		"told again after its delete": {[]*change.Record{record(change.Deleted, "a", "5"), record(change.Added, "a", "6")}, listed("20", "a", "6"), "1 0 0 0 0 0"},
	} {
		t.Run(name, func(t *testing.T) {
			r := Compare(logOf(t, "", encode.File, c.records...), c.list)
			if got := fmt.Sprint(r.Equal, r.Missing, r.Stale, r.Extra, r.Changing, r.Unjudged); got != c.want {
				t.Errorf("found %s, want %s: %+v", got, c.want, r)
			}
		})
	}
}

func TestVerifyLeavesOpenWhatAFilterDecides(t *testing.T) {
	list := listed("20", "a", "7", "b", "8")
	list.Deletes = false
	for key, o := range list.Objects {
		o.Optional = true
		list.Objects[key] = o
	}
	r := Compare(logOf(t, "", encode.File, record(change.Added, "a", "5"), record(change.Added, "c", "6")), list)
	if len(r.Differences) != 0 || r.Unjudged != 3 {
		t.Errorf("found %+v, want three objects unjudged", r)
	}
}

// TestVerifyLeavesOpenWhatMayBeIgnored: an older version of the same object, and nothing else.
func TestVerifyLeavesOpenWhatMayBeIgnored(t *testing.T) {
	list := listed("20", "a", "7", "b", "8", "c", "9")
	for key, o := range list.Objects {
		if o.Behind = true; key.Name == "c" {
			o.UID = "u-another"
		}
		list.Objects[key] = o
	}
	r := Compare(logOf(t, "", encode.File, record(change.Added, "a", "5"), record(change.Added, "c", "6")), list)
	if r.Unjudged != 1 || r.Missing != 1 || r.Stale != 1 {
		t.Errorf("found %+v, want a unjudged, b missing and c stale", r)
	}
}

// TestVerifyFoldsALostLogAsAConsumerDoes: what the snapshot after a loss does not name is gone.
func TestVerifyFoldsALostLogAsAConsumerDoes(t *testing.T) {
	for _, reason := range []change.Reason{change.Lost, change.Requested} {
		snapshot := &change.Snapshot{ID: "20.1", Reason: reason, ResourceVersion: "20"}
		frame := func(op change.Op) *change.Record {
			return &change.Record{Stream: pods(), Op: op, ResourceVersion: "20", Snapshot: snapshot, Received: time.UnixMilli(2000)}
		}
		named := record(change.Sync, "a", "5")
		named.Snapshot = snapshot
		log := logOf(t, "", encode.File, record(change.Added, "a", "5"), record(change.Added, "b", "6"), frame(change.SnapshotBegin), named, frame(change.SnapshotEnd))
		r := Compare(log, listed("20", "a", "5"))
		if want := map[change.Reason]int{change.Lost: 0, change.Requested: 1}[reason]; r.Extra != want || r.Equal != 1 {
			t.Errorf("reason %s: found %+v, want %d extra", reason, r, want)
		}
	}
}

// TestI4VerifyFindsTheKeysThatATableKeepsOfBefore: what consumers of a table see is its keys.
func TestI4VerifyFindsTheKeysThatATableKeepsOfBefore(t *testing.T) {
	const was, is = "shop/a", `{"name":"a"}`
	put := func(key, version string, op change.Op) *sink.Stored {
		id := record(op, "a", version).ID(uid).String()
		return &sink.Stored{Destination: "t", Row: "in t key " + key, Key: []byte(`{"name":"a"}`), Headers: []sink.Header{{Name: sink.HeaderID, Value: id}}, Value: []byte("{}")}
	}
	end := func(m *sink.Stored) *sink.Stored { m.Value, m.Erases = nil, true; return m }
	elsewhere := put(was, "6", change.Updated)
	elsewhere.Partition, elsewhere.Row = 1, "in t partition 1"
	later := put(is, "6", change.Replaced) // in a partition that is read first
	later.Partition, later.Time = 1, time.UnixMilli(1)
	history := put(was, "5", change.Added)
	history.Row = ""
	for name, c := range map[string]struct {
		log  []*sink.Stored
		list *List
		want string // equal, extra, changing
	}{
		"one key":                {[]*sink.Stored{put(was, "5", change.Added), put(was, "6", change.Updated)}, listed("20", "a", "6"), "1 0 0"},
		"the old key beside it":  {[]*sink.Stored{put(was, "5", change.Added), put(is, "6", change.Replaced)}, listed("20", "a", "6"), "1 1 0"},
		"the old key, ended":     {[]*sink.Stored{put(was, "5", change.Added), {Destination: "t", Row: "in t key " + was, Erases: true}, put(is, "6", change.Replaced)}, listed("20", "a", "6"), "1 0 0"},
		"in another partition":   {[]*sink.Stored{put(was, "5", change.Added), elsewhere}, listed("20", "a", "6"), "1 1 0"},
		"deleted under the new":  {[]*sink.Stored{put(was, "5", change.Added), put(is, "7", change.Deleted), end(put(is, "7", change.Deleted))}, listed("20"), "0 1 0"},
		"deleted, no tombstones": {[]*sink.Stored{put(was, "5", change.Added), put(was, "7", change.Deleted)}, listed("20"), "0 0 0"},
		"ended by somebody":      {[]*sink.Stored{put(is, "6", change.Replaced), {Destination: "t", Row: "in t key " + is, Erases: true}}, listed("20"), "0 0 0"},
		"newer than the list":    {[]*sink.Stored{put(was, "25", change.Added), put(is, "26", change.Updated)}, listed("20"), "0 0 2"},
		"read the other way":     {[]*sink.Stored{later, put(was, "5", change.Added)}, listed("20", "a", "6"), "1 1 0"},
		"no table":               {[]*sink.Stored{history, put(is, "6", change.Replaced)}, listed("20", "a", "6"), "1 0 0"},
	} {
		t.Run(name, func(t *testing.T) {
			l := NewLog("")
			for _, m := range c.log {
				must(t, l.Take(m))
			}
			r := Compare(l, c.list)
			if got := fmt.Sprint(r.Equal, r.Extra, r.Changing); got != c.want {
				t.Errorf("found %s, want %s: %+v", got, c.want, r)
			}
			for _, d := range r.Differences {
				if d.Kind != Extra || d.Place != "in t key "+was {
					t.Errorf("tells %+v", d)
				}
			}
		})
	}
}

func TestVerifyABucketsMarkers(t *testing.T) {
	l := NewLog("")
	put := &sink.Stored{Destination: "$KV.B.core.pods.shop.a", Row: "a", Headers: []sink.Header{{Name: sink.HeaderID, Value: record(change.Added, "a", "5").ID(uid).String()}}, Value: []byte("{}")}
	for _, m := range []*sink.Stored{put, {Destination: put.Destination, Row: "a", Erases: true}} {
		must(t, l.Take(m))
	}
	if r := Compare(l, listed("20")); r.Extra != 0 {
		t.Errorf("found %+v, although somebody took the key out of the bucket", r)
	}
	if r := Compare(l, listed("20", "a", "5")); r.Missing != 1 {
		t.Errorf("found %+v, although the bucket does not have the object", r)
	}
}

func TestVerifyOfOneClusterAmongSeveral(t *testing.T) {
	l := NewLog("ffffffff-0000")
	must(t, l.Take(&sink.Stored{Headers: []sink.Header{{Name: sink.HeaderID, Value: record(change.Added, "a", "5").ID(uid).String()}}}))
	if r := Compare(l, listed("20")); r.Extra != 0 || l.Foreign != 1 {
		t.Errorf("another cluster's record counts: %+v, %d foreign", r, l.Foreign)
	}
}

func TestVerifyKeepsWhatDiffersTwice(t *testing.T) {
	log := logOf(t, "", encode.File, record(change.Added, "a", "5"), record(change.Added, "b", "6"))
	r := Compare(log, listed("20")).Both(Compare(log, listed("20", "a", "5")))
	if len(r.Differences) != 1 || r.Extra != 1 || r.Differences[0].Name != "b" {
		t.Errorf("found %+v, want b alone", r)
	}
}

// TestI3AnObjectThatWentOnInAnotherTopicIsAsItWasToldLast, in whatever order the topics are read.
func TestI3AnObjectThatWentOnInAnotherTopicIsAsItWasToldLast(t *testing.T) {
	type told struct {
		topic, version string
		op             change.Op
		milli          int64
	}
	for name, c := range map[string]struct {
		read []told
		want string
	}{
		"older topic last":          {[]told{{"b", "9", change.Updated, 9}, {"a", "7", change.Added, 7}, {"a", "8", change.Updated, 8}}, "9"},
		"newer topic last":          {[]told{{"a", "7", change.Added, 7}, {"b", "9", change.Updated, 9}}, "9"},
		"there and back":            {[]told{{"a", "7", change.Added, 7}, {"a", "10", change.Updated, 10}, {"b", "9", change.Updated, 9}}, "10"},
		"within a millisecond":      {[]told{{"a", "10", change.Updated, 7}, {"b", "9", change.Updated, 7}}, "10"},
		"deleted elsewhere":         {[]told{{"-", "8", change.Deleted, 9}, {"a", "8", change.Updated, 8}}, ""},
		"another history, restored": {[]told{{"a", "900", change.Updated, 8}, {"b", "12", change.Updated, 9}}, "12"},
	} {
		l := NewLog("")
		for _, r := range c.read {
			id := record(r.op, "web", r.version).ID(uid).String()
			m := &sink.Stored{Destination: r.topic, Key: []byte("shop/web"), Value: []byte("{}"), Time: time.UnixMilli(r.milli)}
			m.Headers = []sink.Header{{Name: sink.HeaderID, Value: id}}
			must(t, l.Take(m))
		}
		key := change.Key{Namespace: "shop", Name: "web"}
		have := l.resources["pods"][key]
		if got := have.version; l.exists("pods", key, have) != (c.want != "") || c.want != "" && got != c.want {
			t.Errorf("%s: the object is at version %s, gone %t, want %q", name, got, have.gone, c.want)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
