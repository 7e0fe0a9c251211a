package source

import (
	"cmp"
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
func (d *difference) pass(ctx context.Context, entry change.Entry) error {
	passed := unlisted{entry: entry, list: d.upTo}
	switch {
	case d.sorted:
		return d.gone(ctx, passed)
	case len(d.passed) == maxPassed:
		return errUnsorted
	}
	d.passed = append(d.passed, passed)
	return nil
}

// proveOrder takes the continue token of a page. Where it proves the order, the records from here on prove how far the
// list was told.
func (d *difference) proveOrder(ctx context.Context, token string) error {
	if d.sorted || d.inventory.listed != nil || !isRange(token, cmp.Or(d.snapshot.Limits.Namespace, d.out.stream.Namespace), d.inventory.last) {
		return nil
	}
	for _, p := range d.parts {
		snapshot := *p.snapshot // the records in line have the other one
		snapshot.Ordered = true
		p.snapshot = &snapshot
	}
	return d.emitPassed(ctx)
}

// emitPassed tells of the entries that the list has passed over, now that its order is known.
func (d *difference) emitPassed(ctx context.Context) error {
	d.sorted = true
	for _, passed := range d.passed {
		if err := d.gone(ctx, passed); err != nil {
			return err
		}
	}
	d.passed = nil
	return nil
}

// isRange says whether the list goes on at a key after the last one, as a server says that reads a range of etcd's
// keys (k8s.io/apiserver, pkg/storage/continue.go). A token of another form proves nothing.
func isRange(token, namespace string, last []byte) bool {
	text, err := base64.RawURLEncoding.DecodeString(token)
	var next struct {
		Version string `json:"v"`
		Start   string `json:"start"`
	}
	if err != nil || json.Unmarshal(text, &next) != nil || next.Version != "meta.k8s.io/v1" || len(last) == 0 {
		return false
	}
	start := strings.TrimPrefix(next.Start, "/")
	if namespace != "" {
		start = namespace + "/" + start
	}
	return start > string(last)
}
