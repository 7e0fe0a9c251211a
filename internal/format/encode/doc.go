// Package encode turns records into the messages that sinks write. An object's bytes are spliced into the message as
// they came from the API server; nothing is parsed and printed again. The package is pure: no clock, no goroutine, no
// I/O. A format may call an interface that does I/O, such as Schemas. The implementation is a package of its own, as
// package registry is, and package destination wires it.
//
// Decisions:
//
//   - A format returns an error instead of a message, and has the context of the delivery. Unless it is a
//     *sink.RejectedError, the error counts as a failure of the sink: the sink is closed, opened again at its mark, and
//     given the record once more. All streams of the sink wait meanwhile. A format that can lack something for one
//     stream alone comes with a listener.Gate, which holds up that stream only.
//   - Four formats behind one Encoder. In Debezium's envelope, records without an object go out without a value:
//     readers stop at an operation that they do not know, and skip a message without a value.
//   - Readable ids instead of hashes. cluster/resource/namespace/name/uid/version/op costs some 60 bytes more, and lets
//     a sink's tail be read back into the inventory; a hash only says "seen".
//   - `before` in CloudEvents is an attribute with JSON as text: attributes are scalars, and `data` stays the object.
//   - A label is refused in a topic that is compacted. It can change, and the topic would keep the old state for ever.
//   - A record may be several messages of one id, adjacent in a batch, such as a delete and its tombstone.
package encode
