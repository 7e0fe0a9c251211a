// Package httpserver is the address that the process answers at. It stays open from one run to the next, and is shut
// without waiting for whoever asks.
//
// Decisions:
//
//   - Connections have places (places.go): a new one always comes in, for the oldest of whoever has the most. Refusing
//     the newest, as netutil.LimitListener does, would let whoever came first lock out the probes.
//   - The server outlives the runs that it serves. Opening it anew for each term would refuse connections in between,
//     and another process could take the port.
package httpserver
