// Package signal is what is asked of a running exporter through a broker, as data: what is remembered of it, so that
// nothing is done twice. It does no I/O.
//
// Whoever asks through a broker may ask the same again: a client after a timeout, a producer after a retry, an exporter
// that reads a log anew. So a question may have an id, and the ids that were followed are saved in one batch with what
// they have asked for (I5). Whatever happens between two batches, a question was followed and is known, or neither.
package signal
