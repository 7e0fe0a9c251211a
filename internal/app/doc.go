// Package app assembles the parts: it is the only one that knows which sinks there are, and it ties observers together.
// Each of the program's commands is a function here, without its flags and its words.
//
// Decisions:
//
//   - kinds (kinds.go) registers the sinks. The keys of a kind are typed fields in package config, and
//     config.Sink.Kind tells the kind by which field is set. They cannot come from the registration: the reference and
//     the JSON Schema are made from the fields, where there are no sinks, and a registry in config would be a cycle or
//     package state.
//   - /readyz waits for the streams of the start only, each until it has begun or failed to.
//   - Connections have places (places.go): a new one always comes in, for the oldest of whoever has the most. Refusing
//     the newest, as netutil.LimitListener does, would let whoever came first lock out the probes.
//   - Comparisons of verify list first and read the sink then, so the sink is the newer of both. A difference counts
//     only below a saved position (I1), or if a second list at exactly the position shows it, too.
//   - The garbage collector keeps Go's own pace. A pacer that let a busy process collect less often saved no CPU time
//     of the exporter that twelve runs could tell from noise. A fixed GOGC of 200 may save some in snapshots, and costs
//     25 MiB there.
package app
