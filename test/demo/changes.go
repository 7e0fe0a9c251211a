package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const namespace = "demo"

// change is one change of the demonstration, and the words in the line that shows it.
type change struct {
	make  func(ctx context.Context) error
	words []string
}

// makeChanges makes the changes, each when the one before has come back out of the stream.
func makeChanges(ctx context.Context, kubeconfig string, waitFor func(ctx context.Context, words ...string) error) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("load %s: %w", kubeconfig, err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("build a client: %w", err)
	}
	for _, c := range changes(client) {
		if err := c.make(ctx); err != nil {
			return fmt.Errorf("make a change (%v): %w", c.words, err)
		}
		if err := waitFor(ctx, c.words...); err != nil {
			return err
		}
	}
	return nil
}

// snapshots are the words of the lines after which the resources that are changed are watched.
func snapshots() [][]string {
	return [][]string{{"snapshot.end", "namespaces"}, {"snapshot.end", "configmaps"}, {"snapshot.end", "deployments.apps"}}
}

// changes are a deployment's life: created, scaled, deleted.
func changes(client kubernetes.Interface) []change {
	namespaces, deployments, configmaps := client.CoreV1().Namespaces(), client.AppsV1().Deployments(namespace), client.CoreV1().ConfigMaps(namespace)
	patch := func(text string) (types.PatchType, []byte, metav1.PatchOptions) {
		return types.MergePatchType, []byte(text), metav1.PatchOptions{}
	}
	return []change{
		{func(ctx context.Context) error {
			_, err := namespaces.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
			return err
		}, []string{"added", "namespaces", namespace}},
		{func(ctx context.Context) error {
			_, err := configmaps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"colour": "blue"}}, metav1.CreateOptions{})
			return err
		}, []string{"added", "configmaps", "demo/settings"}},
		{func(ctx context.Context) error {
			_, err := deployments.Create(ctx, web(), metav1.CreateOptions{})
			return err
		}, []string{"added", "deployments.apps", "demo/web"}},
		{func(ctx context.Context) error {
			kind, body, options := patch(`{"spec":{"replicas":3}}`)
			_, err := deployments.Patch(ctx, "web", kind, body, options)
			return err
		}, []string{"updated", "deployments.apps", "demo/web", "spec.replicas: 1 -> 3"}},
		{func(ctx context.Context) error {
			kind, body, options := patch(`{"data":{"colour":"green"}}`)
			_, err := configmaps.Patch(ctx, "settings", kind, body, options)
			return err
		}, []string{"updated", "configmaps", "demo/settings"}},
		{func(ctx context.Context) error {
			return deployments.Delete(ctx, "web", metav1.DeleteOptions{})
		}, []string{"deleted", "deployments.apps", "demo/web"}},
		{func(ctx context.Context) error {
			return configmaps.Delete(ctx, "settings", metav1.DeleteOptions{})
		}, []string{"deleted", "configmaps", "demo/settings"}},
	}
}

// web is a deployment of one replica.
func web() *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	replicas := int32(1)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "registry.example/web:1.0"}}},
			},
		},
	}
}
