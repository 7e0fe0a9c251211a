package source

import (
	"context"
	"fmt"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// recall gives the record the object as it was delivered last, and has its own kept. A Sync record changes nothing, so
// nothing was before it.
func (s *Stream) recall(rec *change.Record) error {
	if s.Images == nil || !rec.Op.OfObject() {
		return nil
	}
	rec.Keep = true
	if rec.Op == change.Sync {
		return nil
	}
	image, found, err := s.last(rec.Key, rec.UID)
	if found {
		rec.Before = image
	}
	return err
}

// last is what is kept of the object. One with another uid had the name before, and is another object.
func (s *Stream) last(key change.Key, uid string) (object []byte, found bool, err error) {
	image, found, err := s.Images.Last(s.stream.String(), key)
	if err != nil {
		return nil, false, fmt.Errorf("look up the last form of %s in %s: %w", key, s.stream, err)
	}
	return image.Object, found && image.UID == uid, nil
}

// keepMissing keeps an unchanged object of which nothing is kept, as it would be delivered: one that was delivered
// before objects were kept, or in another form. The record is nobody's.
func (r *run) keepMissing(ctx context.Context, object *frame.Object) error {
	if r.Images == nil {
		return nil
	}
	rec := r.record(change.Sync, object)
	if _, found, err := r.last(rec.Key, rec.UID); found || err != nil {
		return err
	}
	rec.Snapshot = r.snapshot
	if err := r.shape(&rec); err != nil || rec.Filtered || rec.Withheld != "" {
		return err
	}
	rec.Filtered = true
	return r.enter(ctx, &rec) // it may pass what is held: that is of other objects
}
