// Command exporter streams every change of chosen Kubernetes resources to Kafka, NATS JetStream and files: once, in
// order, and never silently lost.
//
// Each command has a file of its own, with its flags and its words. What a run does is in internal/app and below,
// and what it prints in internal/observe/console.
package main
