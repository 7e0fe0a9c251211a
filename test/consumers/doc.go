// Package consumers reads what the exporter writes to a real Apache Kafka and a real JetStream with consumers that we
// did not write: the official Go SDK of CloudEvents, Flink SQL with its debezium-json, and a JSON Schema validator.
// Each must end up with what a list of the cluster says.
//
// Patched streams are folded by jsonpatch, from the files, a JetStream and a Kafka topic of an exporter that is killed;
// E2E_KILLS is how often.
//
// Typed topics are read by fastavro, by nothing but the schemas of a registry. In one test a CRD changes meanwhile;
// E2E_SCHEMA_CHANGES is how often.
//
// Tables of PostgreSQL and Iceberg, and documents of MongoDB, are written by the connectors of docs/kafka-connect.md.
//
// It needs a JDK and Maven, and is skipped without; CI=true requires them.
package consumers
