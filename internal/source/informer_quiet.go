package source

import (
	"context"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// Watches of core Events get no bookmarks, since the API server does not cache them, so the position of a quiet stream
// would stay until the server has forgotten it. It moves by two proofs together: a watch was silent from its begin to
// its orderly end, and a list after it is what the sinks were told. The silence alone might be that of an API server
// that is cut off from etcd, the list alone does not show what was made and deleted. Then it is the version that the
// server had when the watch began.

// moveQuiet moves the positions of a stream that was silent, where it is proven that it is quiet.
func (i *Informer) moveQuiet(ctx context.Context) error {
	version := i.silence.take()
	if version == "" || change.CompareVersions(version, i.brought) <= 0 {
		return nil
	}
	i.turns.take()
	compares := i.compares()
	i.turns.give()
	if compares || !i.isUnchanged(ctx, version) {
		return ctx.Err()
	}
	i.turns.take()
	defer i.turns.give()
	i.brings(version)
	i.bookmark(strings.Clone(version))
	return nil
}

// isUnchanged says whether a list of now, which is at least of the version, is what each sink was told. What fails
// proves nothing, and the next watch tells of it.
func (i *Informer) isUnchanged(ctx context.Context, version string) bool {
	p, start, last := page{limit: pageSize}, "", ""
	keys := map[string]struct{}{}
	for {
		meta, err := i.origin.collection.list(ctx, p, func(object frame.Object) error {
			key := change.Key{Namespace: object.Namespace, Name: object.Name}
			if last = key.String(); last <= start {
				return errUnsorted
			}
			keys[last] = struct{}{}
			for _, seat := range i.seats {
				row, err := seat.Newest(checkpoint.Object{Resource: i.way.Resource, Key: key})
				if err != nil || !row.Exists() || row.UID != object.UID || row.At.Version != object.ResourceVersion {
					return errChanged
				}
			}
			return nil
		})
		if err != nil || change.CompareVersions(meta.ResourceVersion, version) < 0 {
			return false
		}
		upTo := last
		if meta.Continue == "" {
			upTo = ""
		}
		for _, seat := range i.seats {
			for key, err := range seat.Has(i.way.Resource, string(i.way.Scope), start, upTo) {
				if err != nil {
					return false
				}
				if _, listed := keys[key.String()]; listed {
					continue
				}
				if row, err := seat.Newest(checkpoint.Object{Resource: i.way.Resource, Key: key}); err != nil || row.Exists() {
					return false
				}
			}
		}
		p.exactly, p.token = meta.ResourceVersion, meta.Continue
		if start = last; p.token == "" {
			return true
		}
		clear(keys)
	}
}
