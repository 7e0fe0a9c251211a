package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// hands is how many definitions are made at once.
const hands = 16

const definition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
"metadata":{"name":"kind%[1]ds.bench%[2]d.example.com"},"spec":{"group":"bench%[2]d.example.com","scope":"Namespaced",
"names":{"plural":"kind%[1]ds","singular":"kind%[1]d","kind":"Kind%[1]d"},
"versions":[{"name":"v1","served":true,"storage":true,
"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`

// perGroup is how many custom resources a group has.
const perGroup = 30

// define makes the definitions from one number to another, and returns how many streams "*" stands for when all of them
// are served.
func define(ctx context.Context, client *kubernetes.Clientset, from, to int) (streams int, err error) {
	group, making := errgroup.WithContext(ctx)
	group.SetLimit(hands)
	for i := from; i < to; i++ {
		group.Go(func() error {
			body := fmt.Sprintf(definition, i, i/perGroup)
			path := "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
			return client.RESTClient().Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(making).Error()
		})
	}
	if err := group.Wait(); err != nil {
		return 0, fmt.Errorf("make the definitions: %w", err)
	}
	for {
		custom, all, err := served(client)
		if err == nil && custom == to {
			return all, nil
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("wait for %d custom resources, of which %d are served: %w", to, custom, ctx.Err())
		case <-time.After(time.Second):
		}
	}
}

// served counts what can be watched, but for Secrets and the second path to Events.
func served(client *kubernetes.Clientset) (custom, all int, err error) {
	lists, err := client.Discovery().ServerPreferredResources()
	for _, list := range lists {
		for _, r := range list.APIResources {
			if !slices.Contains(r.Verbs, "watch") || !slices.Contains(r.Verbs, "list") {
				continue
			}
			if r.Name == "secrets" || list.GroupVersion == "events.k8s.io/v1" {
				continue
			}
			all++
			if r.SingularName != "" && len(r.Name) > 4 && r.Name[:4] == "kind" {
				custom++
			}
		}
	}
	return custom, all, err
}

// touch changes a Pod twenty times a second until stop.
func touch(ctx context.Context, client *kubernetes.Clientset) (stop func(), err error) {
	pods := client.CoreV1().Pods("default")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "touched"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "none"}}},
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	_, err = client.CoreV1().ServiceAccounts("default").Create(ctx, account, metav1.CreateOptions{})
	if err == nil || apierrors.IsAlreadyExists(err) {
		_, err = pods.Create(ctx, pod, metav1.CreateOptions{})
	}
	if err != nil {
		return nil, fmt.Errorf("make a Pod: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			patch := fmt.Appendf(nil, `{"metadata":{"labels":{"turn":"%d"}}}`, i)
			_, _ = pods.Patch(ctx, "touched", types.MergePatchType, patch, metav1.PatchOptions{})
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	return func() { cancel(); <-done }, nil
}
