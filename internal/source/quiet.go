package source

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// Watches of core Events get no bookmarks, since the API server does not cache them, so the position of a quiet stream
// would stay until the server has forgotten it. It moves by two proofs together: a watch was silent from its begin to
// its orderly end, and a list after it is what the inventory has. The silence alone might be that of an API server
// that is cut off from etcd, the list alone does not show what was made and deleted. Then it is the version that the
// server had when the watch began.

// proofDrain is how long a proof waits for the sinks, so that the inventory is that of the position.
const proofDrain = time.Second

// moveQuiet moves the position of a stream that was silent, where it is proven that it is quiet.
func (s *Stream) moveQuiet(ctx context.Context) error {
	version := s.silence.take()
	if version == "" || change.CompareVersions(version, s.cursor.position.ResourceVersion) <= 0 || !s.isUnchanged(ctx, version) {
		return nil
	}
	version = strings.Clone(version)
	s.turns.take()
	defer s.turns.give()
	return s.push(ctx, &change.Record{Stream: &s.stream, Op: change.Bookmark, ResourceVersion: version, Position: s.cursor.moveTo(version)})
}

var errChanged = errors.New("the list differs from the inventory")

// isUnchanged says whether a list of now, which is at least of the version, is what the inventory has. What fails
// proves nothing, and the next watch tells of it.
func (s *Stream) isUnchanged(ctx context.Context, version string) bool {
	drain, cancel := context.WithTimeout(ctx, proofDrain)
	defer cancel()
	if s.drain(drain) != nil {
		return false
	}
	m := newMerge(s.Inventory, s.stream.String(), s.origin.unsorted.Load())
	defer m.close()
	p := page{limit: pageSize}
	for {
		meta, err := s.origin.collection.list(ctx, p, func(object frame.Object) error { return m.confirm(&object) })
		if err != nil || change.CompareVersions(meta.ResourceVersion, version) < 0 {
			return false
		}
		p.exactly, p.token = meta.ResourceVersion, meta.Continue
		if p.token == "" {
			break
		}
	}
	for range m.rest() {
		return false
	}
	return true
}

// confirm returns an error where the listed object is not the inventory's next.
func (m *merge) confirm(object *frame.Object) error {
	key := change.Key{Namespace: object.Namespace, Name: object.Name}
	entry, found, err := m.find(key, func(change.Entry) error { return errChanged })
	if err == nil && (!found || entry.UID != object.UID || entry.ResourceVersion != object.ResourceVersion) {
		err = errChanged
	}
	return err
}
