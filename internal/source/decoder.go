package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// decoder is the watch.Decoder over the raw bytes of a watch. It puts the records in line itself, in the goroutine that
// has just read them: to hand each to the Reflector would wake a goroutine, which for small objects costs more than all
// else that is done for them. The Reflector learns of a watch that it has begun, and how it ended.
type decoder struct {
	ctx    context.Context // of Stream.Run
	stream *Stream
	body   io.ReadCloser
	frames *frame.Reader
	ended  func(frames int, orderly bool, took time.Duration)

	number int       // of the watch
	began  time.Time // when it was asked for

	// the stream's turn guards the following
	count   int           // frames
	orderly bool          // the server has ended the watch
	took    time.Duration // until then
	closed  bool
}

// Decode puts the records of the watch in line. It returns the first frame, as a bookmark, so that the Reflector knows
// a watch that works; an error that the server sends; and the end. It blocks until there is one of these.
func (d *decoder) Decode() (watch.EventType, runtime.Object, error) {
	for {
		f, err := d.frames.Next()
		if err != nil {
			d.over(err)
			return "", nil, err
		}
		first := d.take(&f)
		switch {
		case f.Type == frame.Error:
			status, err := decodeStatus(f.Status)
			return watch.Error, status, err
		case first:
			version := metav1.ObjectMeta{ResourceVersion: strings.Clone(f.Object.ResourceVersion)}
			return watch.Bookmark, &metav1.PartialObjectMetadata{ObjectMeta: version}, nil
		}
	}
}

// take puts the frame's record in line, but for replays, and says whether it is the watch's first. A record that could
// not be judged makes a reconcile due: it would be missing otherwise (I4). What comes while a reconcile is due is left
// out, too: the watch is being ended, and the position stays where the next one continues.
func (d *decoder) take(f *frame.Frame) (first bool) {
	s := d.stream
	s.turns.take()
	defer s.turns.give()
	d.count++
	if f.Type == frame.Error || d.closed || s.schedule.isDue() {
		return d.count == 1
	}
	if err := d.push(f); err != nil && d.ctx.Err() == nil {
		err = s.refuse(d.ctx, err)
		s.Observer.Failed(s.stream, err)
		s.schedule.add(change.Owed{Reason: change.Stale})
	}
	return d.count == 1
}

func (d *decoder) push(f *frame.Frame) error {
	s := d.stream
	// it moves the position in line, after the records before it
	if s.silence.bookmarked = s.silence.bookmarked || f.Type == frame.Bookmark; f.Type == frame.Bookmark {
		version := f.Object.ResourceVersion
		if !change.IsVersion(version) {
			return s.origin.versions.unordered("a bookmark has the resourceVersion %.40q", version)
		}
		return s.tell(d.ctx, &change.Record{Stream: &s.stream, Op: change.Bookmark, ResourceVersion: version, Position: s.cursor.moveTo(version)})
	}
	if err := s.origin.versions.check(&f.Object, ""); err != nil {
		return err
	}
	rec := s.record(opOf(f.Type), &f.Object)
	d.lend(&rec)
	defer d.repay()
	fresh, err := s.cursor.admit(&rec, s.isDelivered)
	if errors.Is(err, errSameVersion) {
		err = s.origin.versions.unordered("%s at %.40q: %v", rec.Key, rec.ResourceVersion, err)
	}
	if err == nil && fresh {
		s.Observer.tellUnreadable(&rec, f.Object.Err)
		err = s.tell(d.ctx, &rec)
		s.proof = proofOf(&rec)
	}
	return err
}

// lend notes that the record's object is lent, where the stream's are. The record is read by then.
func (d *decoder) lend(rec *change.Record) {
	if d.stream.Shape != nil {
		d.stream.loan = loan{rec.Object, d.frames}
	}
}

// repay is before the next frame is read: nothing may have the lent object any more.
func (d *decoder) repay() {
	s := d.stream
	if s.Shape != nil {
		s.loan = loan{}
		s.cursor.seen.settle()
	}
}

// opOf is the operation that a frame tells of.
func opOf(t frame.Type) change.Op {
	switch t {
	case frame.Added:
		return change.Added
	case frame.Modified:
		return change.Updated
	}
	return change.Deleted
}

// over notes how the watch ended, and when, unless it was closed. For its turn it may wait long.
func (d *decoder) over(err error) {
	took := time.Since(d.began)
	d.stream.turns.take()
	defer d.stream.turns.give()
	if !d.closed && err == io.EOF {
		d.orderly, d.took = true, took
	}
	d.stream.turns.closed(d.number)
}

// Close ends a Decode that is waiting for the server. watch.StreamWatcher calls it once.
func (d *decoder) Close() { d.body.Close() }

// end waits for a record that is going in line: none follows, so that whoever ended the watch may go on with the stream
// (I3).
func (d *decoder) end() {
	d.stream.turns.take()
	d.closed = true
	frames, orderly, took := d.count, d.orderly, d.took
	if !orderly {
		took = time.Since(d.began)
	}
	d.stream.turns.closed(d.number)
	d.stream.turns.give()
	d.ended(frames, orderly, took)
}

func decodeStatus(text []byte) (*metav1.Status, error) {
	status := new(metav1.Status)
	if err := json.Unmarshal(text, status); err != nil {
		return nil, fmt.Errorf("decode the server's error %.200q: %w", text, err)
	}
	return status, nil
}
