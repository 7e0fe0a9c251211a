package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Namespaces knows the labels of a cluster's namespaces, which choose topics and subjects.
//
// They are saved, so that a change is noticed that happened while the exporter was down. A namespace that is gone keeps
// its labels, so that the deletes of its objects go where the objects went. The server is not asked for each record,
// but only for a namespace that no list and no event has brought yet.
type Namespaces struct {
	NamespacesConfig
	client metadata.Getter
	guard  *guard
	ctx    context.Context // of the run
	end    context.CancelFunc
	listed chan struct{} // closed when all were listed

	mu     sync.Mutex                   // guards the following
	labels map[string]map[string]string // by name, never nil
	gone   []string                     // those that are gone, or not listed yet, in this order
	moved  chan struct{}                // closed when labels change
}

// NamespacesConfig is what Namespaces need.
type NamespacesConfig struct {
	Rest *rest.Config
	// Saved are the labels by name, as Save saves them; nil labels are those of a namespace that is forgotten.
	Saved map[string]map[string]string
	Save  func(name string, labels map[string]string) error
	// Changed is told of other labels. They are saved after it, so after an error it is told again, and after a crash.
	Changed func(ctx context.Context, name string, before, after map[string]string) error
	// Failed is told of errors after which something is tried again.
	Failed func(err error)
}

// maxGone is how many namespaces keep their labels that are gone (I6).
const maxGone = 1000

// NewNamespaces reads the saved labels. Run follows the namespaces until ctx ends, or its own does.
func NewNamespaces(ctx context.Context, config NamespacesConfig) (*Namespaces, error) {
	guard, err := newGuard(config.Rest)
	if err != nil {
		return nil, fmt.Errorf("build a client for %s: %w", config.Rest.Host, err)
	}
	limitless := rest.CopyConfig(config.Rest)
	limitless.QPS = -1 // one list, and at most one question for each namespace that is in none
	client, err := metadata.NewForConfigAndClient(limitless, &http.Client{Transport: guard})
	if err != nil {
		return nil, fmt.Errorf("build a client for %s: %w", config.Rest.Host, err)
	}
	ctx, end := context.WithCancel(ctx)
	return &Namespaces{
		NamespacesConfig: config, guard: guard, client: client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}),
		ctx: ctx, end: end, listed: make(chan struct{}), labels: config.Saved, gone: slices.Sorted(maps.Keys(config.Saved)),
		moved: make(chan struct{}),
	}, nil
}

// Known are the labels as far as they are known; nil for an unknown namespace.
func (n *Namespaces) Known(name string) map[string]string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.labels[name]
}

// Labels are the labels of the namespace. It waits until they are up to date, and returns an error only when the run
// ends.
func (n *Namespaces) Labels(name string) (labels map[string]string, err error) {
	select {
	case <-n.listed:
	case <-n.ctx.Done():
		return nil, context.Cause(n.ctx)
	}
	for {
		n.mu.Lock()
		labels, moved := n.labels[name], n.moved
		n.mu.Unlock()
		if labels != nil {
			return labels, nil
		}
		isGone := false
		err := n.retry(func() error {
			_, err := n.client.Get(n.ctx, name, metav1.GetOptions{})
			if isGone = apierrors.IsNotFound(err); isGone {
				return nil
			}
			return err
		})
		switch {
		case err != nil:
			return nil, err
		case isGone: // its labels cannot be found out any more
			n.left(name, false)
			continue
		}
		select { // the watch is about to bring it, unless it was cut off and the namespace is deleted before a list
		case <-moved:
		case <-time.After(time.Second):
		case <-n.ctx.Done():
			return nil, context.Cause(n.ctx)
		}
	}
}

// Run follows the namespaces until ctx ends. It is called once.
func (n *Namespaces) Run(ctx context.Context) {
	defer context.AfterFunc(ctx, n.end)()
	list := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return n.client.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if options.TimeoutSeconds != nil {
				*options.TimeoutSeconds = n.guard.watchSeconds(*options.TimeoutSeconds)
			}
			return n.client.Watch(ctx, options)
		},
	}
	informer := cache.NewSharedIndexInformer(list, &metav1.PartialObjectMetadata{}, 0, nil)
	told := func(object any) {
		if namespace, is := object.(*metav1.PartialObjectMetadata); is {
			labels := namespace.Labels
			if labels == nil {
				labels = map[string]string{}
			}
			n.told(namespace.Name, labels)
		}
	}
	registered, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: told, UpdateFunc: func(_, object any) { told(object) },
		DeleteFunc: func(object any) {
			if name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
				n.left(name, true)
			}
		},
	})
	onlyLabels := func(object any) (any, error) {
		if namespace, is := object.(*metav1.PartialObjectMetadata); is {
			namespace.ObjectMeta = metav1.ObjectMeta{
				Name: namespace.Name, Labels: namespace.Labels, UID: namespace.UID, ResourceVersion: namespace.ResourceVersion,
			}
		}
		return object, nil
	}
	failed := func(_ context.Context, _ *cache.Reflector, err error) {
		if !IsGone(err) && !errors.Is(err, io.EOF) { // as watches end: the next list mends that
			n.Failed(err)
		}
	}
	for _, err := range []error{err, informer.SetTransform(onlyLabels), informer.SetWatchErrorHandlerWithContext(failed)} {
		if err != nil { // of an informer that runs, or has ended
			panic(fmt.Sprintf("follow namespaces: %v", err))
		}
	}
	var over sync.WaitGroup
	over.Go(func() { informer.RunWithContext(klog.NewContext(n.ctx, logr.Discard())) })
	if cache.WaitForCacheSync(n.ctx.Done(), registered.HasSynced) {
		close(n.listed)
	}
	over.Wait()
}

// told takes the labels of a namespace that exists. Those of a new one are saved before they are used, so that no
// record goes by labels that the next run does not know.
func (n *Namespaces) told(name string, labels map[string]string) {
	save := func() error { return n.Save(name, labels) }
	if n.Known(name) == nil && n.retry(save) != nil {
		return // the run ends
	}
	n.mu.Lock()
	before := n.labels[name]
	n.labels[name] = labels
	n.gone = slices.DeleteFunc(n.gone, func(other string) bool { return other == name })
	close(n.moved)
	n.moved = make(chan struct{})
	n.mu.Unlock()
	if before == nil || maps.Equal(before, labels) {
		return
	}
	_ = n.retry(func() error { // it fails only when the run ends
		if err := n.Changed(n.ctx, name, before, labels); err != nil {
			return err
		}
		return save()
	})
}

// left notes that the namespace does not exist: told by the watch, or else by a question, whose answer may be late. So
// without told, labels that are known by then stay.
func (n *Namespaces) left(name string, told bool) {
	n.mu.Lock()
	if n.labels[name] == nil {
		n.labels[name] = map[string]string{}
	} else if !told {
		n.mu.Unlock()
		return
	}
	n.gone = append(n.gone, name)
	most := max(0, len(n.gone)-maxGone)
	forgotten := slices.Clone(n.gone[:most])
	n.gone = slices.Delete(n.gone, 0, most)
	for _, name := range forgotten {
		delete(n.labels, name)
	}
	n.mu.Unlock()
	for _, name := range forgotten {
		_ = n.retry(func() error { return n.Save(name, nil) }) // it fails only when the run ends
	}
}

// retry tries again until the run ends.
func (n *Namespaces) retry(do func() error) error {
	forever := backoff.NewExponentialBackOff(backoff.WithMaxInterval(30*time.Second), backoff.WithMaxElapsedTime(0))
	return backoff.RetryNotify(do, backoff.WithContext(forever, n.ctx), func(err error, _ time.Duration) {
		if n.ctx.Err() == nil {
			n.Failed(err)
		}
	})
}
