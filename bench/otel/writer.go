package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/kubecdc/kubecdc/bench"
	"github.com/kubecdc/kubecdc/bench/harness"
)

const (
	busy  = 200 // Pods that change
	hands = 16  // writes that may be under way
)

func (c *course) pods() corev1client.PodInterface {
	return c.client.CoreV1().Pods(metav1.NamespaceDefault)
}

func name(i int) string { return fmt.Sprintf("web-%05d", i) }

// add makes a Pod: the fixture's, without what the API server fills in.
func (c *course) add(ctx context.Context, i int) error {
	var p corev1.Pod
	if err := json.Unmarshal([]byte(bench.PodTemplate()), &p); err != nil {
		return fmt.Errorf("read the Pod: %w", err)
	}
	p.ObjectMeta = metav1.ObjectMeta{Name: name(i), Labels: p.Labels, Annotations: p.Annotations}
	p.Spec.NodeName = "" // so that a delete is at once
	if _, err := c.pods().Create(ctx, &p, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create %s: %w", name(i), err)
	}
	return nil
}

// touch updates the status of a Pod.
func (c *course) touch(ctx context.Context, i, turn int) (version string, err error) {
	patch := fmt.Appendf(nil, `{"status":{"phase":"Running","message":"change %d at %d"}}`, turn, time.Now().UnixNano())
	p, err := c.pods().Patch(ctx, name(i), types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return "", fmt.Errorf("update %s: %w", name(i), err)
	}
	return p.ResourceVersion, nil
}

// replace deletes a Pod and makes it again, and returns the key of the delete.
func (c *course) replace(ctx context.Context, i int) (string, error) {
	p, err := c.pods().Get(ctx, name(i), metav1.GetOptions{})
	if err == nil {
		now := int64(0)
		err = c.pods().Delete(ctx, name(i), metav1.DeleteOptions{GracePeriodSeconds: &now})
	}
	if err != nil {
		return "", fmt.Errorf("delete %s: %w", name(i), err)
	}
	return deleteOf(string(p.UID)), c.add(ctx, i)
}

const deletePrefix = "delete of "

func deleteOf(uid string) string { return deletePrefix + uid }

func isDelete(key string) bool { return strings.HasPrefix(key, deletePrefix) }

// change updates Pods at the rate until ctx ends; every tenth change is a delete, after which the Pod is made again.
// Each hand has Pods of its own. It returns the keys of the changes.
func (c *course) change(ctx context.Context) (map[string]time.Time, error) {
	const own = busy / hands
	under := context.WithoutCancel(ctx) // a write that has begun is known to the end
	return harness.Write(ctx, rate, hands, func(hand, turn int) (string, error) {
		i := hand*own + turn%own
		if turn%10 == 9 {
			return c.replace(under, i)
		}
		return c.touch(under, i, turn)
	})
}
