package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/kubecdc/kubecdc/bench/harness"
)

// hands is how many writes may be under way.
const hands = 64

// namespace is where the objects are.
const namespace = "default"

// course is who takes part.
type course struct {
	client   *kubernetes.Clientset
	exporter *harness.Exporter
	url      string // of the NATS server
	span     time.Duration
}

// create makes the objects, one a hand.
func (c *course) create(ctx context.Context) error {
	for i := range hands {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name(i)}}
		if _, err := c.client.CoreV1().ConfigMaps(namespace).Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create %s: %w", name(i), err)
		}
	}
	return nil
}

func name(hand int) string { return fmt.Sprintf("map-%02d", hand) }

// write changes objects at the rate, and returns when each version was acknowledged.
func (c *course) write(ctx context.Context, rate int) (map[string]time.Time, error) {
	span, over := context.WithTimeout(ctx, c.span)
	defer over()
	return harness.Write(span, rate, hands, func(hand, turn int) (string, error) {
		patch := fmt.Appendf(nil, `{"data":{"text":"%d at %d a second"}}`, turn, rate)
		object, err := c.client.CoreV1().ConfigMaps(namespace).Patch(ctx, name(hand), types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil {
			return "", fmt.Errorf("write %s: %w", name(hand), err)
		}
		return object.ResourceVersion, nil
	})
}
