// Package signal is what is asked of a running exporter through a broker, as data: Debezium's signals and
// notifications, and what is remembered of them, so that nothing is done twice. It does no I/O.
//
// Whoever asks through a broker may ask the same again: a client after a timeout, a producer after a retry, an exporter
// that reads a log anew. So a question may have an id. The ids that were followed, and the place in the log of signals,
// are saved in one batch with what they have asked for (I5). Whatever happens between two batches, a question was
// followed and is known, or neither.
//
// Decisions:
//
//   - Debezium's messages, and not a form of our own: people have tools for them. Unknown fields are ignored, as there.
//   - A filter can be what an API server selects by: namespace, name and labels. Anything else is refused. Debezium
//     gives the text to its database; here it would have to be evaluated over objects that are read anyway, and a
//     snapshot of more than was asked for is worse than none.
//   - A signal is for the sink whose topic it is in, as a connector's is for the connector. So whoever may write to one
//     broker can load no other.
//   - Notifications of a snapshot are sent at least once: the book is saved after them. Refusals are told once at most
//     after a crash; the log has them, too.
package signal
