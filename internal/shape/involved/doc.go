// Package involved says what is known of the object that an Event is about: the metadata that a user asks for, as that
// object was told last. It knows no clock, no goroutine and no I/O of its own.
//
// Decisions:
//
//   - The answer comes from the objects that are kept for before, and there is no index beside them. An index of uid,
//     labels and owners would be a second account of what was told, in memory by the number of objects, and empty after
//     a start that goes on from a position. A request per Event was refused: whoever writes Events would choose how
//     many the API server is sent.
//   - Another stream's goroutine pushes the object's records, so the answer may lack what is on its way now. An
//     Event does not wait for its object: whoever writes Events would choose how long.
//   - The answer is made when the Event is read, and travels with it: after an outage of a sink the object may be
//     gone. It is no part of the id (I8). An Event that is read again after a crash has the id that it had, and may
//     carry newer metadata.
//   - Who may create an Event may name any object in it. An object in a namespace is told by Events of that namespace
//     alone, and one without a namespace by those of namespace default alone, as an API server demands of Events. The
//     uid must be the object's: another object of the name is not the one that the Event is about.
//   - What the resource's rules leave in of a kept object is all that can be told of it, and a sink's own rules come
//     after them (Narrow). An Event whose reference is cut or hashed names nothing (I9).
//   - Labels of one object may be as large as a request, and many Events may name it. More than maxKnown bytes are not
//     told, so that a small Event does not become a large record (I6).
package involved
