package source

import (
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// listerWatcher is what an informer watches through, as the Reflector knows it.
type listerWatcher struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported tells the Reflector to ask for lists, and so leaves them to us.
func (listerWatcher) IsWatchListSemanticsUnSupported() bool { return true }

// stoppable is a watch that the Reflector stops, however it ended. The decoder is closed under a lock of the watch, so
// what may wait long comes after that.
type stoppable struct {
	watch.Interface
	end func()
}

// Stop is watch.Interface's.
func (w *stoppable) Stop() {
	w.Interface.Stop()
	w.end()
}

// reflectorBackoff starts sooner than the Reflector's own, which waits from 0.8 s up to 60 s: from 0.1 s up to 30 s.
// The jitter makes each wait up to twice as long.
func reflectorBackoff() *wait.Backoff {
	return &wait.Backoff{Duration: 100 * time.Millisecond, Cap: 15 * time.Second, Steps: 10, Factor: 2, Jitter: 1}
}

// nopStore is the ReflectorStore of a stream, whose records the decoder and reconcile put in line.
type nopStore struct{}

func (nopStore) Add(any) error { return nil }

func (nopStore) Update(any) error { return nil }

func (nopStore) Delete(any) error { return nil }

// Replace is the Reflector's hand-over of a list. Ours has been put in line already, and is empty.
func (nopStore) Replace([]any, string) error { return nil }

// Resync is not used: the Reflector's own resync would be the same for all sinks.
func (nopStore) Resync() error { return nil }

// errReconcileDue ends the Reflector's watch loop, so that it lists.
func errReconcileDue() error {
	return apierrors.NewResourceExpired("a reconcile is due before the next watch")
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

func decodeStatus(text []byte) (*metav1.Status, error) {
	status := new(metav1.Status)
	if err := json.Unmarshal(text, status); err != nil {
		return nil, fmt.Errorf("decode the server's error %.200q: %w", text, err)
	}
	return status, nil
}
