package source

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// delta carries records through the Reflector, which wants a runtime.Object and asks it for two things only: its
// resourceVersion, which is that of the last record, and its annotations. The embedded interface stands for the methods
// that nobody calls; a call of one would panic.
type delta struct {
	metav1.Object
	records []*change.Record // one at least, in the order of the watch
}

func (d *delta) GetResourceVersion() string        { return d.records[len(d.records)-1].ResourceVersion }
func (d *delta) GetAnnotations() map[string]string { return nil }
func (d *delta) GetObjectKind() schema.ObjectKind  { return schema.EmptyObjectKind }
func (d *delta) DeepCopyObject() runtime.Object    { shallow := *d; return &shallow }

// decoder is the watch.Decoder over the raw bytes of a watch.
type decoder struct {
	stream *Stream
	body   io.ReadCloser
	frames *frame.Reader
	next   frame.Frame  // read and not returned yet, if it has a type
	count  atomic.Int64 // frames; Close is called while Decode may be running
	ended  func(frames int)
}

// maxDelta is the most records that go through the Reflector together. Each passage wakes a goroutine, which for small
// objects costs more than all else that is done for them.
const maxDelta = 64

// Decode returns the next delta, with the records of all frames that the last Read brought whole: it waits for the first
// alone. It blocks until there is one, or the stream ends. Bookmarks and errors are the Reflector's to see, each alone.
func (d *decoder) Decode() (watch.EventType, runtime.Object, error) {
	f, err := d.take()
	if err != nil {
		return "", nil, err
	}
	switch f.Type {
	case frame.Bookmark:
		return watch.Bookmark, &delta{records: []*change.Record{d.record(&f)}}, nil
	case frame.Error:
		status, err := decodeStatus(f.Status)
		return watch.Error, status, err
	}
	event, records := eventOf(f.Type), []*change.Record{d.record(&f)}
	for len(records) < maxDelta && d.frames.Ready() {
		if f, err = d.take(); err != nil {
			break // the next call returns it, too
		}
		if f.Type == frame.Bookmark || f.Type == frame.Error {
			d.next = f
			d.count.Add(-1)
			break
		}
		if f.Type != frame.Added { // the Reflector asks only whether the watch is past its first additions
			event = eventOf(f.Type)
		}
		records = append(records, d.record(&f))
	}
	return event, &delta{records: records}, nil
}

// take returns the next frame.
func (d *decoder) take() (f frame.Frame, err error) {
	if f, d.next = d.next, (frame.Frame{}); f.Type == 0 {
		f, err = d.frames.Next()
	}
	if err == nil {
		d.count.Add(1)
	}
	return f, err
}

func (d *decoder) record(f *frame.Frame) *change.Record {
	rec := d.stream.record(opOf(f.Type), &f.Object)
	return &rec
}

// opOf is the operation that a frame tells of.
func opOf(t frame.Type) change.Op {
	switch t {
	case frame.Added:
		return change.Added
	case frame.Modified:
		return change.Updated
	case frame.Deleted:
		return change.Deleted
	}
	return change.Bookmark
}

// eventOf is the Reflector's name for the type: the same word.
func eventOf(t frame.Type) watch.EventType { return watch.EventType(t.String()) }

// Close ends a Decode that is waiting. watch.StreamWatcher calls it once.
func (d *decoder) Close() {
	d.body.Close()
	d.ended(int(d.count.Load()))
}

func decodeStatus(text []byte) (*metav1.Status, error) {
	status := new(metav1.Status)
	if err := json.Unmarshal(text, status); err != nil {
		return nil, fmt.Errorf("decode the server's error %.200q: %w", text, err)
	}
	return status, nil
}

// deltaStore takes the Reflector's deltas: it is the ReflectorStore and the ReflectorBookmarkStore of a stream. The
// Reflector calls it from one goroutine.
type deltaStore struct {
	ctx    context.Context // the Reflector's calls have none; it is that of Stream.Run
	stream *Stream
}

func (d deltaStore) Add(object any) error    { return d.take(object) }
func (d deltaStore) Update(object any) error { return d.take(object) }
func (d deltaStore) Delete(object any) error { return d.take(object) }

// take puts the records of a delta in line, but for replays. The Reflector logs an error and goes on, so a record
// that could not be judged makes a reconcile due: it would be missing otherwise (I4). What comes while a reconcile is
// due is left out, too: the watch is being ended, and the position stays where the next one continues.
func (d deltaStore) take(object any) error {
	for _, rec := range object.(*delta).records {
		if d.stream.isDue() {
			return nil
		}
		if err := d.takeOne(rec); err != nil {
			if d.ctx.Err() == nil {
				d.stream.Observer.Failed(d.stream.stream, err)
				d.stream.enqueue(change.Owed{Reason: change.Stale})
			}
			return err
		}
	}
	return nil
}

func (d deltaStore) takeOne(rec *change.Record) error {
	fresh, err := d.stream.cursor.admit(rec, d.stream.isDelivered)
	if err == nil && fresh {
		err = d.stream.push(d.ctx, rec)
		d.stream.prove(rec)
	}
	return err
}

// Bookmark moves the position in line, behind the records before it.
func (d deltaStore) Bookmark(version string) error {
	s := d.stream
	if s.isDue() {
		return nil
	}
	rec := &change.Record{Stream: &s.stream, Op: change.Bookmark, ResourceVersion: version, Position: s.cursor.moveTo(version)}
	return s.push(d.ctx, rec)
}

// Replace is the Reflector's hand-over of a list. Ours has been put in line already, and is empty.
func (d deltaStore) Replace([]any, string) error { return nil }

// Resync is not used: the Reflector's own resync would be the same for all sinks.
func (d deltaStore) Resync() error { return nil }

// isDelivered says whether an earlier life of the process delivered the record, as the inventory tells. It is asked only
// about records at the saved position, where the inventory is exact.
func (s *Stream) isDelivered(rec *change.Record) (bool, error) {
	entry, found, err := s.Inventory.Lookup(s.stream.String(), rec.Key)
	if err != nil {
		return false, fmt.Errorf("look up %s in the inventory of %s: %w", rec.Key, s.stream, err)
	}
	if rec.Op == change.Deleted {
		return !found || entry.UID != rec.UID, nil
	}
	return found && entry.UID == rec.UID && change.CompareVersions(entry.ResourceVersion, rec.ResourceVersion) >= 0, nil
}
