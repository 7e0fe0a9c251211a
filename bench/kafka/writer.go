package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	kafkago "github.com/segmentio/kafka-go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"

	"github.com/kubecdc/kubecdc/bench/harness"
)

// writerSpec is what the informer reads and where it writes to.
type writerSpec struct {
	Host    string
	CA      []byte
	Brokers []string
	Topic   string
	Events  int
}

// runWriter is what is usual: a shared informer over the dynamic client, each object marshalled again, and kafka-go's
// Writer with snappy and acks=all. The Writer is asynchronous, which loses what it cannot send but costs it least. It
// is measured until all are written.
func runWriter(ctx context.Context, argument string, reply func(any) error) error {
	var spec writerSpec
	if err := json.Unmarshal([]byte(argument), &spec); err != nil {
		return fmt.Errorf("read the spec: %w", err)
	}
	client, err := dynamic.NewForConfig(&rest.Config{Host: spec.Host, TLSClientConfig: rest.TLSClientConfig{CAData: spec.CA}})
	if err != nil {
		return fmt.Errorf("build a client: %w", err)
	}
	topic := kafkago.TopicConfig{Topic: spec.Topic, NumPartitions: partitions, ReplicationFactor: 1}
	admin := kafkago.Client{Addr: kafkago.TCP(spec.Brokers...)}
	if _, err := admin.CreateTopics(ctx, &kafkago.CreateTopicsRequest{Topics: []kafkago.TopicConfig{topic}}); err != nil {
		return fmt.Errorf("create topic %s: %w", spec.Topic, err)
	}
	written := make(chan int)
	w := &kafkago.Writer{
		Addr: admin.Addr, Topic: spec.Topic, Balancer: kafkago.Murmur2Balancer{}, RequiredAcks: kafkago.RequireAll,
		Compression: kafkago.Snappy, Async: true,
		Completion: func(messages []kafkago.Message, err error) {
			if err != nil {
				fmt.Fprintf(os.Stderr, "write to Kafka: %v\n", err) // so all are never written
				return
			}
			written <- len(messages)
		},
	}
	forward := func(object any) {
		u := object.(*unstructured.Unstructured)
		text, err := json.Marshal(u)
		if err == nil {
			err = w.WriteMessages(ctx, kafkago.Message{Key: []byte(u.GetNamespace() + "/" + u.GetName()), Value: text})
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "write to Kafka: %v\n", err)
		}
	}
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, metav1.NamespaceAll, nil)
	informer := factory.ForResource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Informer()
	if _, err := informer.AddEventHandler(forwarder(forward)); err != nil {
		return fmt.Errorf("add a handler: %w", err)
	}
	before, err := harness.UsageOf(os.Getpid())
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	for events := 0; events < spec.Events; {
		events += <-written
	}
	after, err := harness.UsageOf(os.Getpid())
	if err != nil {
		return err
	}
	return reply(harness.Measured{Events: spec.Events, CPU: after.CPU - before.CPU, Peak: after.PeakRSS})
}

// forwarder handles the informer's events, which are one to it.
type forwarder func(object any)

func (f forwarder) OnAdd(object any, _ bool) { f(object) }
func (f forwarder) OnUpdate(_, object any)   { f(object) }
func (f forwarder) OnDelete(any)             {} // there are none
