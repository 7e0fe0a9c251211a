// Package app assembles the parts: it is the only one that knows which sinks there are, and it ties observers together.
// Each of the program's commands is a function here, without its flags and its words.
//
// Decisions:
//
//   - Which streams there are is a function of catalog and configuration (choose); the follower brings the running
//     streams to what it says.
//   - A wildcard that stands for nothing is no error, since what it is for may be installed later. A name of one
//     resource that is not served is a mistake, unless the state knows its stream.
//   - Two entries that contradict each other for a resource which appears later stop nothing: the first one counts, and
//     the log says so once.
//   - /readyz waits for the streams of the start only, each until it has begun or failed to.
//   - Connections have places (places.go): a new one always comes in, for the oldest of whoever has the most. Refusing
//     the newest, as netutil.LimitListener does, would let whoever came first lock out the probes.
//   - Comparisons of verify list first and read the sink then, so the sink is the newer of both. A difference counts
//     only below a saved position (I1), or if a second list at exactly the position shows it, too.
package app
