package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// announce waits for the API server, then writes the kubeconfig and one line.
func announce(ctx context.Context, dir dataDir, began time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	config, err := kubeconfig(dir)
	if err != nil {
		return err
	}
	if err := awaitReady(ctx, config); err != nil {
		return startError(ctx, err)
	}
	path := dir.path("kubeconfig")
	data, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	if err := writeFile(path, data); err != nil {
		return err
	}
	_, err = fmt.Printf("ready: kubeconfig %s, server %s, after %.1fs\n",
		path, config.Clusters["devcluster"].Server, time.Since(began).Seconds())
	return err
}

// kubeconfig has one context a user, and all it needs within itself.
func kubeconfig(dir dataDir) (*clientcmdapi.Config, error) {
	port, err := dir.knownPort(roleAPIServer)
	if err != nil {
		return nil, err
	}
	authority, err := os.ReadFile(dir.cert())
	if err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	const cluster = "devcluster"
	config := clientcmdapi.NewConfig()
	config.Clusters[cluster] = &clientcmdapi.Cluster{Server: "https://" + address(port), CertificateAuthorityData: authority}
	config.CurrentContext = "dev"
	for context, user := range map[string]string{"dev": adminUser, "limited": limitedUser} {
		token, err := dir.token(user)
		if err != nil {
			return nil, err
		}
		config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: token}
		config.Contexts[context] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: user}
	}
	return config, nil
}

// awaitReady returns once /readyz holds and the cluster has its identity, the
// uid of kube-system, which on a new cluster is there only a little later than
// the port.
func awaitReady(ctx context.Context, config *clientcmdapi.Config) error {
	rc, err := clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	client, err := rest.HTTPClientFor(rc)
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	defer client.CloseIdleConnections()
	var last error
	if err := poll(ctx, func() bool { last = probe(ctx, client, rc.Host); return last == nil }); err != nil {
		return fmt.Errorf("wait for API server at %s: %w: last answer: %w", rc.Host, err, last)
	}
	return nil
}

func probe(ctx context.Context, client *http.Client, server string) error {
	if _, err := get(ctx, client, server+"/readyz"); err != nil {
		return err
	}
	body, err := get(ctx, client, server+"/api/v1/namespaces/kube-system")
	if err != nil {
		return err
	}
	var namespace struct{ Metadata struct{ UID string } }
	if err := json.Unmarshal(body, &namespace); err != nil {
		return fmt.Errorf("read namespace kube-system: %w", err)
	}
	if namespace.Metadata.UID == "" {
		return errors.New("read namespace kube-system: it has no uid yet")
	}
	return nil
}

func get(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("get %s: %s: %.200s", url, response.Status, body)
	}
	return body, err
}
