package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const (
	hands     = 32 // writes that may be under way
	namespace = "sizing"
)

// writer makes the objects and changes them.
type writer struct {
	client  *kubernetes.Clientset
	objects int
}

func name(i int) string { return fmt.Sprintf("settings-%07d", i) }

// create makes all objects, of about 1.5 KiB each.
func (w *writer) create(ctx context.Context) error {
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := w.client.CoreV1().Namespaces().Create(ctx, made, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create namespace %s: %w", namespace, err)
	}
	return each(ctx, func(do func(int) bool) {
		for i := 0; i < w.objects && do(i); i++ {
		}
	}, func(ctx context.Context, i int) error {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name(i)}, Data: map[string]string{}}
		for line := range 16 {
			object.Data[fmt.Sprintf("key-%02d", line)] = strings.Repeat(fmt.Sprintf("%08x", i*31+line), 9)
		}
		_, err := w.client.CoreV1().ConfigMaps(namespace).Create(ctx, object, metav1.CreateOptions{})
		return err
	})
}

// change changes objects, one after the other, at the rate, and returns how many it changed. A write whose turn comes
// while all hands are full waits.
func (w *writer) change(ctx context.Context, rate int, span time.Duration) (changes int, err error) {
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	end := time.Now().Add(span)
	err = each(ctx, func(do func(int) bool) {
		for time.Now().Before(end) && do(changes) {
			changes++
			<-tick.C
		}
	}, func(ctx context.Context, i int) error {
		patch := fmt.Appendf(nil, `{"data":{"key-00":"change %d"}}`, i)
		_, err := w.client.CoreV1().ConfigMaps(namespace).Patch(ctx, name(i%w.objects), types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
	return changes, err
}

// each does the work for every number that give hands out. do says whether to go on.
func each(ctx context.Context, give func(do func(int) bool), work func(context.Context, int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	turns := make(chan int)
	var done sync.WaitGroup
	for range hands {
		done.Go(func() {
			for i := range turns {
				if err := work(ctx, i); err != nil {
					cancel(fmt.Errorf("write %s: %w", name(i), err))
				}
			}
		})
	}
	give(func(i int) bool {
		select {
		case turns <- i:
			return true
		case <-ctx.Done():
			return false
		}
	})
	close(turns)
	done.Wait()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
