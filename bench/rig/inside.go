package rig

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kubecdc/kubecdc/internal/app/selection"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/format/encode"
	"github.com/kubecdc/kubecdc/internal/listener"
	"github.com/kubecdc/kubecdc/internal/pipeline"
	"github.com/kubecdc/kubecdc/internal/shape/transform"
	"github.com/kubecdc/kubecdc/internal/sink/file"
	"github.com/kubecdc/kubecdc/internal/source"
)

// Inside is the exporter's line inside the process, of Pods into a file, for profiles: the binary has no profiler.
type Inside struct {
	Host string
	CA   []byte
	Dir  string // an empty directory for state and file
	// Rules of the Pods, YAML of the keys beside resource; "" is none.
	Rules string
}

// Output is the file that is written.
func (i *Inside) Output() string { return filepath.Join(i.Dir, "changes.ndjson") }

// Run runs until ctx ends.
func (i *Inside) Run(ctx context.Context) (err error) {
	store, err := checkpoint.Open(ctx, filepath.Join(i.Dir, "state"), checkpoint.Options{})
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := store.Close(); err == nil {
			err = closeErr
		}
	}()
	target := file.New(file.Options{Path: i.Output()})
	from, err := i.source(store)
	if err != nil {
		return err
	}
	const uid = "8a5b1c3d-2e4f-4a6b-8c7d-9e0f1a2b3c4d"
	return pipeline.Run(ctx, pipeline.Config{
		ClusterUID: uid, Sources: []pipeline.Source{from}, Store: store, StopTimeout: 20 * time.Second, Observer: pipeline.NopObserver(),
		Sinks: []listener.Sink{{
			Name: "file", Target: target, Queue: fifo.Limit{Bytes: 64 << 20, Records: 1 << 16},
			Encoder: encode.NewEncoder(encode.Options{Cluster: "bench", ClusterUID: uid}),
		}},
	})
}

func (i *Inside) source(store *checkpoint.Store) (pipeline.Source, error) {
	client, err := source.NewClient(&rest.Config{Host: i.Host, TLSClientConfig: rest.TLSClientConfig{CAData: i.CA}}, 1)
	if err != nil {
		return pipeline.Source{}, err
	}
	observer := source.NopObserver()
	observer.Failed = func(stream change.Stream, err error) { fmt.Fprintf(os.Stderr, "stream %s: %v\n", stream, err) }
	pods := change.Stream{Resource: change.Resource{Version: "v1", Name: "pods", Kind: "Pod"}}
	shape, err := i.shape(pods)
	if err != nil {
		return pipeline.Source{}, err
	}
	informer := source.NewSharedInformer(source.Config{Client: client, Stream: pods, Histories: store, Observer: observer, Shape: shape})
	informer.Serve(pods.Resource.Version)
	return selection.SourceOf(pods, informer), nil
}

// shape is what the rules do with the records, as in the binary.
func (i *Inside) shape(pods change.Stream) (func(*change.Record), error) {
	if i.Rules == "" {
		return nil, nil
	}
	const text = "resources: [{resource: pods, %s}]\nsinks: [{file: {path: /dev/null}}]\n"
	configured, err := config.Parse("rules", fmt.Appendf(nil, text, i.Rules), os.LookupEnv)
	if err != nil {
		return nil, err
	}
	return selection.ShapeOf(&selection.Selected{Stream: pods, Configured: &configured.Resources[0]}, transform.Key{Secret: []byte("key")}, func(*change.Record, error) {})
}
