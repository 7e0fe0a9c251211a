package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// watchBare watches the live changes with nothing but client-go, as the limit of what any exporter could show: it pays
// for the API server's time, too. It ends with the API server.
func (t *trial) watchBare(ctx context.Context) error {
	watch, err := t.client.CoreV1().ConfigMaps(live).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("watch the live changes: %w", err)
	}
	go func() {
		for event := range watch.ResultChan() {
			if object, ok := event.Object.(*corev1.ConfigMap); ok {
				t.bare.Note(object.ResourceVersion)
			}
		}
	}()
	return nil
}
