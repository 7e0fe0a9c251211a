// Package webhook receives the API server's audit webhook over HTTPS, and puts what package audit makes of the events
// in line. It answers 200 when every sink that is told has the records, durably, or they wait for it on disk.
//
// # Delivery
//
// The API server sends a batch again until it gets an answer of 200, a few times, and then drops it. So the records are
// at least once as far as the API server goes, and their ids are functions of the events. A record that this process
// has put in line before is not put there again: the newest 65,536 ids are remembered. Such a batch is answered like
// any other, when all is saved that was in line before.
//
// Where a sink is slow, the answer is 503 after 25 s, before the API server gives up by itself, and the records that
// are in line stay there.
//
// # Bounds
//
// A sender has a certificate, and is an API server. What tenants write decides how much it sends.
//
//   - An event is read by itself, and one of more than 24 MiB is passed over and counted. No object that an API server
//     stores makes a larger one. Only one event above 1 MiB is in memory at a time.
//   - Eight requests are read at once. To others the answer is 429 with Retry-After.
//   - Records go in line in small groups. A full queue makes the request wait.
//   - A request has 25 s in all, so that a slow sender takes a place for no longer.
//
// # Decisions
//
//   - Certificates alone, no bearer token. A token in the webhook's kubeconfig would be a second secret to rotate and a
//     second way in, and the API server can show a certificate in any case.
//   - The certificate and the CA are looked at with each handshake, and read when their files have changed. Sessions
//     are not resumed: a resumed one would not be compared with the present CA.
//   - The answer waits for the sinks. To keep the events in the state and answer at once would be a second queue, with
//     bounds of its own, beside the spools that sinks have.
//   - A framer of bytes finds the events. A decoder of JSON would hold a whole event before it can say how long it is.
package webhook
