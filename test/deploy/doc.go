// Package deploy tests what is in deploy, the Dockerfile and docker-compose.yaml: with Helm, kustomize, Prometheus and
// Compose as libraries, against a real API server and the real exporter. It is a module of its own, so that none of
// them is a dependency of the exporter.
//
// Decisions about what it tests:
//
//   - The chart is the source. The manifests for kustomize, a part of the values' schema and the rule for the
//     Prometheus operator are made from it and from the configuration's types (make manifests).
//   - One replica has a StatefulSet and a volume. A second one could only wait for both: a StatefulSet starts the next
//     pod as soon as the volume is free. So two replicas are a Deployment without volumes, which share a Lease and a
//     log of the state. A StatefulSet of two was refused: it does not replace a pod on a node that is dead.
//   - Two replicas are on two nodes by a constraint that the scheduler must keep. It leaves out nodes that are dead, so
//     that a cluster of two nodes, or of one, has both pods all the same.
//   - The Service of the audit webhook is one of its own, with an address, and leads to each pod, ready or not. To lead
//     to ready ones alone was refused: a leader with a stopped sink is not ready, and all batches would go to a
//     standby, which takes none. To mark the leader by a label was refused, too: the exporter would need a right to
//     change pods.
//   - release makes what a version consists of: another program that wants libraries which the exporter does not.
//   - Roles are made from the configuration, in the chart, by the names that kubectl takes; a test asks the API server
//     whether each means the same there. A role for "*" can read Secrets, which RBAC cannot leave out, so it has to be
//     asked for.
package deploy
