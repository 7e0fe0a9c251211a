package main

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"

	"github.com/kubecdc/kubecdc/bench/client"
	"github.com/kubecdc/kubecdc/bench/harness"
)

// runInformer is what is usual: a shared informer over the dynamic client, and each object marshalled again.
func runInformer(ctx context.Context, spec client.Spec, meter *harness.Meter) error {
	dynamicClient, err := dynamic.NewForConfig(spec.Config())
	if err != nil {
		return fmt.Errorf("build a client: %w", err)
	}
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(dynamicClient, 0, metav1.NamespaceAll, nil)
	informer := factory.ForResource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Informer()
	if _, err := informer.AddEventHandler(marshaller{meter}); err != nil {
		return fmt.Errorf("add a handler: %w", err)
	}
	factory.Start(ctx.Done())
	<-ctx.Done()
	factory.Shutdown()
	return nil
}

// marshaller handles the informer's events.
type marshaller struct{ meter *harness.Meter }

// OnAdd, OnUpdate and OnDelete are one to it.
func (m marshaller) OnAdd(object any, _ bool) { m.marshal(object) }
func (m marshaller) OnUpdate(_, object any)   { m.marshal(object) }
func (m marshaller) OnDelete(object any)      { m.marshal(object) }
func (m marshaller) marshal(object any) {
	if text, err := json.Marshal(object); err == nil && len(text) > 0 {
		m.meter.Add(1)
	}
}
