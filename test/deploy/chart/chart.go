// Package chart renders the chart as Helm does, with Helm's own packages.
package chart

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
)

// Release is what is installed.
type Release struct {
	Dir       string // of the chart
	Name      string
	Namespace string
	Values    string // YAML, over the chart's own
	Cluster   string // is config.cluster where the values have none
	// Server is asked for what templates look up; nil is no server, as with helm template.
	Server *rest.Config
}

// Render returns the objects in the order of their files. The error is Helm's: a value that the schema refuses is named
// in it by its path.
func Render(r Release) ([]*unstructured.Unstructured, error) {
	loaded, err := loader.LoadDir(r.Dir)
	if err != nil {
		return nil, fmt.Errorf("load the chart: %w", err)
	}
	given, err := common.ReadValues([]byte(r.Values))
	if err != nil {
		return nil, fmt.Errorf("read the values: %w", err)
	}
	r.name(given)
	options := common.ReleaseOptions{Name: r.Name, Namespace: r.Namespace, Revision: 1, IsInstall: true}
	values, err := util.ToRenderValues(loaded, given, options, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := r.render(loaded, values)
	if err != nil {
		return nil, err
	}
	return decodeAll(files)
}

func (r *Release) render(loaded *chart.Chart, values common.Values) (map[string]string, error) {
	if r.Server == nil {
		return engine.Render(loaded, values)
	}
	return engine.RenderWithClient(loaded, values, r.Server)
}

// name gives the cluster its name.
func (r *Release) name(values common.Values) {
	if r.Cluster == "" {
		return
	}
	of, given := values["config"].(map[string]any)
	if !given && values["config"] == nil {
		of = map[string]any{}
		values["config"] = of
	}
	if _, named := of["cluster"]; of != nil && !named && of["clusters"] == nil {
		of["cluster"] = r.Cluster
	}
}

func decodeAll(files map[string]string) ([]*unstructured.Unstructured, error) {
	var names []string
	for name := range files {
		if path.Ext(name) == ".yaml" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var all []*unstructured.Unstructured
	for _, name := range names {
		objects, err := Decode(files[name])
		if err != nil {
			return nil, fmt.Errorf("read rendered %s: %w", name, err)
		}
		all = append(all, objects...)
	}
	return all, nil
}

// Decode reads YAML documents; empty ones are left out.
func Decode(text string) ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewBufferString(text), 4096)
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil && !strings.Contains(err.Error(), "'Kind' is missing in 'null'"):
			return nil, err
		case len(object.Object) > 0:
			objects = append(objects, object)
		}
	}
}
