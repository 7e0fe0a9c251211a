package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// worker changes the objects of one kind, and is the only one who does. So it knows what became of a request whose
// answer never came: it reads the object back.
type worker struct {
	kind   *kind
	client dynamic.ResourceInterface
	ledger *ledger
	random *rand.Rand
	slots  []*slot
	marks  int
}

// slot is a name that objects have one after the other.
type slot struct {
	name   string
	object *unstructured.Unstructured // nil while there is none
}

func newWorker(k *kind, client dynamic.Interface, ledger *ledger, random *rand.Rand) *worker {
	w := &worker{kind: k, client: client.Resource(k.resource), ledger: ledger, random: random}
	if k.namespace != "" {
		w.client = client.Resource(k.resource).Namespace(k.namespace)
	}
	for _, name := range k.names {
		w.slots = append(w.slots, &slot{name: name})
	}
	return w
}

// run makes a change each pace until ctx ends. The change that is under way then is finished.
func (w *worker) run(ctx context.Context, pace time.Duration) error {
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := w.step(context.WithoutCancel(ctx)); err != nil {
			return fmt.Errorf("writer of %s: %w", w.kind.name(), err)
		}
	}
}

// step makes one change, or two: an object that is deleted and at once made again.
func (w *worker) step(ctx context.Context) error {
	s := w.slots[w.random.IntN(len(w.slots))]
	choice := w.random.IntN(20)
	switch {
	case s.object == nil:
		return w.create(ctx, s)
	case choice < 14:
		return w.update(ctx, s)
	case choice < 16:
		return w.delete(ctx, s)
	}
	if err := w.delete(ctx, s); err != nil {
		return err
	}
	return w.create(ctx, s)
}

// createAll makes an object of every name.
func (w *worker) createAll(ctx context.Context) error {
	for _, s := range w.slots {
		if err := w.create(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// disturb deletes an object, deletes another and makes it again, and updates a third, of those that are there; where
// there are fewer, it makes them first.
func (w *worker) disturb(ctx context.Context) (deleted []string, err error) {
	var there, missing []*slot
	for _, s := range w.slots {
		if s.object != nil {
			there = append(there, s)
		} else {
			missing = append(missing, s)
		}
	}
	known := min(2, len(there)) // the others that are deleted were never there for the exporter
	for len(there) < 3 {
		if err := w.create(ctx, missing[0]); err != nil {
			return nil, err
		}
		there, missing = append(there, missing[0]), missing[1:]
	}
	gone, remade, changed := there[0], there[1], there[2]
	for _, s := range there[:known] {
		deleted = append(deleted, string(s.object.GetUID()))
	}
	for _, step := range []func() error{
		func() error { return w.delete(ctx, gone) },
		func() error { return w.delete(ctx, remade) },
		func() error { return w.create(ctx, remade) },
		func() error { return w.update(ctx, changed) },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return deleted, nil
}

func (w *worker) create(ctx context.Context, s *slot) error {
	object := &unstructured.Unstructured{Object: w.kind.manifest()}
	if w.kind.resource.Resource == "clusterroles" {
		object.SetKind("ClusterRole")
	}
	object.SetName(s.name)
	w.dress(object)
	if w.kind.finalized {
		object.SetFinalizers([]string{"example.com/hold"})
	}
	made, err := w.certainly(ctx, s.name,
		func(ctx context.Context) (*unstructured.Unstructured, error) {
			return w.client.Create(ctx, object, metav1.CreateOptions{})
		},
		func(found *unstructured.Unstructured) bool { return found != nil })
	if err != nil {
		return err
	}
	s.object = made
	w.ledger.created(w.kind.name(), made)
	return nil
}

func (w *worker) update(ctx context.Context, s *slot) error {
	object := s.object.DeepCopy()
	w.dress(object)
	return w.put(ctx, s, object)
}

// dress writes a new mark, and any of the kind's labels, which the mark names, too.
func (w *worker) dress(object *unstructured.Unstructured) {
	mark := w.mark()
	if apps := w.kind.apps; len(apps) > 0 {
		app := apps[w.random.IntN(len(apps))]
		object.SetLabels(map[string]string{appLabel: app})
		mark += " " + app
	}
	object.SetAnnotations(map[string]string{markAnnotation: mark})
}

// put writes a new version of the object.
func (w *worker) put(ctx context.Context, s *slot, object *unstructured.Unstructured) error {
	made, err := w.certainly(ctx, s.name,
		func(ctx context.Context) (*unstructured.Unstructured, error) {
			return w.client.Update(ctx, object, metav1.UpdateOptions{})
		},
		func(found *unstructured.Unstructured) bool {
			return found != nil && found.GetResourceVersion() != s.object.GetResourceVersion()
		})
	if err != nil {
		return err
	}
	s.object = made
	w.ledger.updated(made)
	return nil
}

// delete deletes the object. One with a finalizer gets a version by that, and is gone when the finalizer is. The same
// goes for a pod whose delete was cut in two by a crash of the API server.
func (w *worker) delete(ctx context.Context, s *slot) error {
	marked := func(found *unstructured.Unstructured) bool {
		return found == nil || w.kind.finalized && found.GetDeletionTimestamp() != nil
	}
	left, err := w.certainly(ctx, s.name, func(ctx context.Context) (*unstructured.Unstructured, error) {
		none := int64(0)
		if err := w.client.Delete(ctx, s.name, metav1.DeleteOptions{GracePeriodSeconds: &none}); err != nil {
			return nil, err
		}
		return w.read(ctx, s.name)
	}, marked)
	if err != nil {
		return err
	}
	hidden := 0
	switch {
	case left != nil:
		s.object = left
		w.ledger.updated(left)
		if err := w.release(ctx, s); err != nil {
			return err
		}
	case w.kind.resource.Resource == "pods":
		hidden = 1
	}
	w.ledger.deleted(string(s.object.GetUID()), hidden)
	s.object = nil
	return nil
}

// release takes the finalizer away, and so the object: this is no version any more.
func (w *worker) release(ctx context.Context, s *slot) error {
	object := s.object.DeepCopy()
	object.SetFinalizers(nil)
	_, err := w.certainly(ctx, s.name,
		func(ctx context.Context) (*unstructured.Unstructured, error) {
			if _, err := w.client.Update(ctx, object, metav1.UpdateOptions{}); err != nil {
				return nil, err
			}
			return nil, nil
		},
		func(found *unstructured.Unstructured) bool { return found == nil })
	return err
}

// mark is a new text to write.
func (w *worker) mark() string {
	w.marks++
	return strconv.Itoa(w.marks)
}

// patience is how long the API server may be away.
const patience = 2 * time.Minute

// certainly sends a request until it is known to be applied, and returns the object as it is then, nil where it is
// gone. Where a request fails, applied judges the object that is read back.
func (w *worker) certainly(ctx context.Context, name string, request func(context.Context) (*unstructured.Unstructured, error),
	applied func(*unstructured.Unstructured) bool) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		object, err := request(ctx)
		if err == nil {
			return object, nil
		}
		if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
			return nil, err
		}
		found, readErr := w.readBack(ctx, name)
		if readErr != nil {
			return nil, errors.Join(err, readErr)
		}
		if applied(found) {
			return found, nil
		}
	}
}

// readBack reads the object as soon as the API server can tell how it is.
func (w *worker) readBack(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		found, err := w.read(ctx, name)
		if err == nil {
			return found, nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("read %s %s back: %w: %w", w.kind.name(), name, ctx.Err(), err)
		}
	}
}

// read returns the object, nil where there is none. A server that starts may say that it does not know the resource.
func (w *worker) read(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	found, err := w.client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && strings.HasSuffix(err.Error(), strconv.Quote(name)+" not found") {
		return nil, nil
	}
	return found, err
}
