package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	kafkago "github.com/segmentio/kafka-go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"

	"github.com/kubecdc/kubecdc/bench/client"
	"github.com/kubecdc/kubecdc/bench/harness"
)

// runWriter is what is usual: a shared informer over the dynamic client, each object marshalled again, and kafka-go's
// Writer with snappy and acks=all. The Writer is asynchronous, which loses what it cannot send but costs it least.
func runWriter(ctx context.Context, spec client.Spec, meter *harness.Meter) error {
	dynamicClient, err := dynamic.NewForConfig(spec.Config())
	if err != nil {
		return fmt.Errorf("build a client: %w", err)
	}
	brokers, name, _ := strings.Cut(spec.Target, "/")
	written, failed := make(chan int), make(chan error, 1)
	w := &kafkago.Writer{
		Addr: kafkago.TCP(strings.Split(brokers, ",")...), Topic: name, Balancer: kafkago.Murmur2Balancer{},
		RequiredAcks: kafkago.RequireAll, Compression: kafkago.Snappy, Async: true, Completion: completion(ctx, written, failed),
	}
	defer w.Close()
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(dynamicClient, 0, metav1.NamespaceAll, nil)
	informer := factory.ForResource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Informer()
	if _, err := informer.AddEventHandler(forwarder{ctx, w}); err != nil {
		return fmt.Errorf("add a handler: %w", err)
	}
	factory.Start(ctx.Done())
	for {
		select {
		case n := <-written:
			meter.Add(n)
		case err := <-failed:
			return err
		case <-ctx.Done():
			factory.Shutdown()
			return nil
		}
	}
}

// completion tells of what is written, and of the first failure.
func completion(ctx context.Context, written chan<- int, failed chan<- error) func([]kafkago.Message, error) {
	return func(messages []kafkago.Message, err error) {
		if err != nil {
			select {
			case failed <- fmt.Errorf("write to Kafka: %w", err):
			default:
			}
			return
		}
		select {
		case written <- len(messages):
		case <-ctx.Done():
		}
	}
}

// forwarder handles the informer's events.
type forwarder struct {
	ctx context.Context
	to  *kafkago.Writer
}

// OnAdd, OnUpdate and OnDelete are one to it.
func (f forwarder) OnAdd(object any, _ bool) { f.forward(object) }
func (f forwarder) OnUpdate(_, object any)   { f.forward(object) }
func (f forwarder) OnDelete(object any)      { f.forward(object) }

func (f forwarder) forward(object any) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return
	}
	text, err := json.Marshal(u)
	if err == nil {
		err = f.to.WriteMessages(f.ctx, kafkago.Message{Key: []byte(u.GetNamespace() + "/" + u.GetName()), Value: text})
	}
	if err != nil && f.ctx.Err() == nil {
		fmt.Fprintf(os.Stderr, "write to Kafka: %v\n", err)
	}
}
