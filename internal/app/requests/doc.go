// Package requests answers what is asked of a run: by an operator over loopback, by SIGHUP, and by others through the
// broker of a sink.
//
// Decisions:
//
//   - Whoever asks, a Handler does it, so the same words mean the same everywhere. A brokerHandler adds what a broker
//     needs: an id is followed once, and what was heard is saved in the batch that follows it (I5).
//   - What was heard through a broker that nobody listens to any more is forgotten. Were it kept, old questions would
//     be followed when somebody listens again.
package requests
