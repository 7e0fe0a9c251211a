package source

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
)

// A sorted list is compared with the inventory as files are merged, and how far it was told is one key. kube-apiserver
// lists in the bytewise order of its keys, since it reads a range of etcd's; an aggregated API server may have another,
// such as that of namespace and name, and nobody knows before two keys are out of order. So nothing is concluded from
// the order before it is proven: by a continue token, or by the end of the list.

// maxPassed bounds the entries that wait for the proof (I6). Where there are more, the keys of the list are remembered
// instead.
const maxPassed = 1 << 16

// pass takes an entry of the inventory that the list has passed over: it is gone, if the list is sorted.
func (r *run) pass(ctx context.Context, entry change.Entry) error {
	passed := unlisted{entry, r.upTo}
	switch {
	case r.sorted:
		return r.gone(ctx, passed)
	case len(r.passed) == maxPassed:
		return errUnsorted
	}
	r.passed = append(r.passed, passed)
	return nil
}

// proveOrder takes the continue token of a page. Where it proves the order, the records from here on prove how far the
// list was told.
func (r *run) proveOrder(ctx context.Context, token string) error {
	listed := r.limited()
	if r.sorted || r.server.unsorted.Load() || !isRange(token, &listed.stream, r.inventory.last) {
		return nil
	}
	for _, p := range r.parts {
		snapshot := *p.snapshot // the records in line have the other one
		snapshot.Ordered = true
		p.snapshot = &snapshot
	}
	return r.emitPassed(ctx)
}

// emitPassed tells of the entries that the list has passed over, now that its order is known.
func (r *run) emitPassed(ctx context.Context) error {
	r.sorted = true
	for _, passed := range r.passed {
		if err := r.gone(ctx, passed); err != nil {
			return err
		}
	}
	r.passed = nil
	return nil
}

// isRange says whether the list goes on at a key after the last one, as a server says that reads a range of etcd's
// keys (k8s.io/apiserver, pkg/storage/continue.go). A token of another form proves nothing.
func isRange(token string, stream *change.Stream, last []byte) bool {
	text, err := base64.RawURLEncoding.DecodeString(token)
	var next struct {
		Version string `json:"v"`
		Start   string `json:"start"`
	}
	if err != nil || json.Unmarshal(text, &next) != nil || next.Version != "meta.k8s.io/v1" || len(last) == 0 {
		return false
	}
	start := strings.TrimPrefix(next.Start, "/")
	if stream.Namespace != "" {
		start = stream.Namespace + "/" + start
	}
	return start > string(last)
}
