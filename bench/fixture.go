// Package bench holds what the benchmarks are fed with. Each benchmark is a command below it; what they share is in
// packages harness, replay, rig, cluster and client.
package bench

import _ "embed"

//go:embed testdata/pod.template.json
var podTemplate string

// PodTemplate is a Pod of 12 KiB as an API server writes it, on one line, with __NAME__, __UID__ and __RV__ to fill in.
func PodTemplate() string { return podTemplate }
