// Package app assembles a run of the exporter, and ties its observers together. It stands on the packages below
// it, which commands that need no run use, too.
//
// Decisions:
//
//   - The port of the audit webhook outlives the runs, as the status server's does.
//   - /readyz waits for the streams of the start only, each until it has begun or failed to.
//   - The garbage collector keeps Go's own pace. A pacer that let a busy process collect less often saved no CPU time
//     of the exporter that twelve runs could tell from noise. A fixed GOGC of 200 may save some in snapshots, and costs
//     25 MiB there.
package app
