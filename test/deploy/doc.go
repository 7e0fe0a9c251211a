// Package deploy tests what is in deploy, the Dockerfile and docker-compose.yaml: with Helm, kustomize, Prometheus and
// Compose as libraries, against a real API server and the real exporter. It is a module of its own, so that none of
// them is a dependency of the exporter.
//
// Decisions about what it tests:
//
//   - The chart is the source. The manifests for kustomize, a part of the values' schema and the rule for the
//     Prometheus operator are made from it and from the configuration's types (make manifests).
//   - One replica. A second one could only wait for the volume and the lock of the first: a StatefulSet starts the next
//     one as soon as the volume is free.
//   - release makes what a version consists of: another program that wants libraries which the exporter does not.
//   - Roles are made from the configuration, in the chart, by the names that kubectl takes; a test asks the API server
//     whether each means the same there. A role for "*" can read Secrets, which RBAC cannot leave out, so it has to be
//     asked for.
package deploy
