// Package e2e proves the promises of DESIGN.md with real processes: a kube-apiserver on its etcd, a NATS server, three
// brokers of Apache Kafka, and the exporter, each of which is killed while a writer changes objects.
//
// The writer remembers every version that the API server gave it. The judge reads the sinks by itself, sharing no code
// with the exporter, and compares: per object every version once and in order, nothing missing outside an announced
// gap, every delete once, and in the end the same uids, versions and bodies as a list. After a restored etcd and in
// another cluster it begins anew, with what the sink has of the history before. TestJudgeFindsWhatIsWrong proves that
// the judge sees what it should.
//
// TestKafka needs a JDK and is skipped without one, unless CI=true. Its topics have partitions, so the judge holds the
// order of each object, and that of each partition; the frames of a snapshot are told apart by its id.
//
// E2E_SEED changes what the tests do at random, E2E_KILLS and E2E_RESTARTS how often they kill the exporter and restart
// the API server, E2E_CUTS how many milliseconds a connection lives on average; E2E_TENANT is
// for how many seconds a tenant does what it may; -short does less. E2E_STARTS is how often an exporter starts that
// is configured anew at random between its starts, and E2E_SEEDS how many seeds are tried, from E2E_SEED on. With
// -artifacts, the logs and what the sinks got are kept.
package e2e
