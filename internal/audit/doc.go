// Package audit derives from an audit event of the API server (audit.k8s.io/v1) which user made which object state. It
// is pure: it knows no clock, no goroutine and no I/O.
//
// # What an event proves
//
// An event has the answer to its request, and the answer has uid and version of an object. That alone does not say who
// made the state: a patch that changes nothing, and a second delete, are answered with what somebody else has made. So
// each answer has a Certainty.
//
//	proven    created: the API server answered 201, and the state did not exist before
//	proven    an update or a patch at a resourceVersion, answered with a later one: nobody else can have written between
//	proven    a delete answered by a Status that has the uid: the object was there, and is gone
//	likely    the newest entry of managedFields is the request's manager, at a second within the request
//	possible  anything else; each object of a deletecollection; the removal of the last finalizer
//
// A write at a resourceVersion that is answered with the same one has changed nothing, and is not told.
//
// Tenants write the requests. So a body is read by exact names, and no precondition is taken from one where a name
// comes twice, where a strategic merge patch has directives, or where several operations of a JSON Patch may touch the
// version. What remains is trusted: the API server, and admission webhooks that change an object's resourceVersion.
//
// # Decisions
//
//   - A certainty, not silence. To tell only what is proven would leave out most of what kubectl does, since it patches
//     without a version. To tell all as proven would name a wrong user, some day.
//   - A record is of the event alone. Whoever would wait for the other event of the same state could prove more. It
//     would have to wait for batches that never come, and the record would depend on what has come.
//   - Of two deletes that are answered by a Status for one uid both are proven: both users asked, and to both it was
//     confirmed. The API server lets that happen where a delete also changes finalizers.
//   - The id of a change has its operation, which is a pure function of the request where that is proven to have made
//     the state and the stream has no selector. Elsewhere, and of deletes, the record has uid and version alone. A
//     patch that changes nothing may be answered with what a create has made (measured).
//   - A record's own id has the object's key and the hash of what is told, and not the audit id: who sends a request
//     may choose that, and could take the place of somebody else's record. change.ParseID does not take it, so that a
//     sink's log is not taken to tell of a change.
//   - An apply at a resourceVersion is a precondition like any other (measured). An audit event does not say which kind
//     of patch it was, so that could not be told apart.
//   - After an etcd that was restored, and until the stream notices that, an actor may name a change of the history
//     before, since versions come again. A stream notices it within seconds, and batches mostly come later. What was
//     completed before it noticed is possible at most.
//   - A change without an actor proves no missing event: a policy may leave it out, or another API server have made it.
//     What is missing is the end of a write whose begin was told, and nothing else.
//   - Nothing of a body is kept but name, namespace, uid and resourceVersion (I9).
package audit
