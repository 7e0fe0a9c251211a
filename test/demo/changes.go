package main

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// The paths of what is changed.
const (
	configMaps  = "/api/v1/namespaces/demo/configmaps"
	deployments = "/apis/apps/v1/namespaces/demo/deployments"
)

// snapshots are the words of the lines after which the resources that are changed are watched.
func snapshots() [][]string {
	return [][]string{{"snapshot.end", "namespaces"}, {"snapshot.end", "configmaps"}, {"snapshot.end", "deployments.apps"}}
}

// makeChanges makes changes, a deployment's life among them, each when the one before has come back out of the stream:
// a line has its words.
func makeChanges(ctx context.Context, kubeconfig string, waitFor func(ctx context.Context, words ...string) error) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("load %s: %w", kubeconfig, err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("build a client: %w", err)
	}
	const web = `{"metadata":{"name":"web"},"spec":{"replicas":1,"selector":{"matchLabels":{"app":"web"}},
		"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"registry.example/web:1.0"}]}}}}`
	for _, c := range []struct {
		verb, path, body string
		words            []string
	}{
		{http.MethodPost, "/api/v1/namespaces", `{"metadata":{"name":"demo"}}`, []string{"added", "namespaces", "demo"}},
		{http.MethodPost, configMaps, `{"metadata":{"name":"settings"},"data":{"colour":"blue"}}`, []string{"added", "configmaps", "demo/settings"}},
		{http.MethodPost, deployments, web, []string{"added", "deployments.apps", "demo/web"}},
		{http.MethodPatch, deployments + "/web", `{"spec":{"replicas":3}}`, []string{"updated", "deployments.apps", "demo/web", "spec.replicas: 1 -> 3"}},
		{http.MethodPatch, configMaps + "/settings", `{"data":{"colour":"green"}}`, []string{"updated", "configmaps", "demo/settings"}},
		{http.MethodDelete, deployments + "/web", `{}`, []string{"deleted", "deployments.apps", "demo/web"}},
		{http.MethodDelete, configMaps + "/settings", `{}`, []string{"deleted", "configmaps", "demo/settings"}},
	} {
		kind := "application/json"
		if c.verb == http.MethodPatch {
			kind = "application/merge-patch+json"
		}
		request := client.CoreV1().RESTClient().Verb(c.verb).AbsPath(c.path).SetHeader("Content-Type", kind).Body([]byte(c.body))
		if err := request.Do(ctx).Error(); err != nil {
			return fmt.Errorf("make a change (%v): %w", c.words, err)
		}
		if err := waitFor(ctx, c.words...); err != nil {
			return err
		}
	}
	return nil
}
