package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/kubecdc/kubecdc/bench/harness"
)

// hands is how many writes may be under way.
const hands = 32

// The objects that nobody changes are in one namespace, and those that are changed in one after it: the list comes to
// them last.
const (
	still = "default"
	live  = "live"
)

// crowd is the objects on the API server.
type crowd struct {
	objects, bytes int
	rate           int // of changes a second
	speed          int // of the second sink, in bytes a second
	quiet          time.Duration
	kills          int
	file           string // of all latencies

	client *kubernetes.Clientset
}

// create makes all objects.
func (c *crowd) create(ctx context.Context) error {
	began := time.Now()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: live}}
	if _, err := c.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create namespace %s: %w", live, err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(hands)
	for hand := range hands {
		group.Go(func() error { return c.createOne(ctx, live, name(hand), "") })
	}
	text := strings.Repeat("0123456789abcdef", c.bytes/16)
	for i := range c.objects {
		group.Go(func() error { return c.createOne(ctx, still, fmt.Sprintf("map-%06d", i), text) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%d objects were made in %v\n", c.objects, time.Since(began).Round(time.Second))
	return nil
}

func (c *crowd) createOne(ctx context.Context, namespace, name, text string) error {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"text": text}}
	_, err := c.client.CoreV1().ConfigMaps(namespace).Create(ctx, object, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create %s: %w", name, err)
	}
	return nil
}

func name(hand int) string { return fmt.Sprintf("live-%02d", hand) }

// change changes objects at the rate until ctx ends, and returns when each version was acknowledged.
func (c *crowd) change(ctx context.Context) (map[string]time.Time, error) {
	return harness.Write(ctx, c.rate, hands, func(hand, turn int) (string, error) {
		patch := fmt.Appendf(nil, `{"data":{"text":"%d at %d"}}`, turn, time.Now().UnixNano())
		maps := c.client.CoreV1().ConfigMaps(live)
		// It is not ended in the middle: a change without an answer would not be waited for.
		object, err := maps.Patch(context.Background(), name(hand), types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil {
			return "", fmt.Errorf("change %s: %w", name(hand), err)
		}
		return object.ResourceVersion, nil
	})
}
