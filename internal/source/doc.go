// Package source reads resources from an API server and gives their changes to the sinks.
//
// A SharedInformer is the life of one resource's stream, and its Informers are its watches: one that sinks share, and
// others for sinks that lag behind it. An Informer runs client-go's Reflector over a ListerWatcher and a decoder of its
// own, the feed. Each change becomes a change.Record as soon as its frame is read, and is offered to each seat: a sink
// as this watch sees it (package listener). What a sink was told, and its position, is with the sink and not here.
//
// What the Informers of a stream have in common is in common.go: who is given it, what is asked for, and which history
// is read. The origin is what is known of the server, and which of its answers count. The collection is what asks the
// server. What judges the server is pure, as a rule: proof, endings, silence and sightings.
//
// # One watch, many sinks
//
// A watch begins at the lowest position of its sinks, and the others skip what they have by its version. All of them
// share a record, in one shape, with what was told of the object before. A sink without room holds the others up for
// some milliseconds, and then leaves: it goes on with a watch of its own, and returns to the common one when it has all
// that this has brought.
//
// Before each watch the server is asked where it stands (standing), and each sink decides how it goes on from its
// position (listener.Seat.Begin): perhaps with a gap and a comparison.
//
// # Comparisons
//
// What a watch cannot bring a comparison finds: a first snapshot, what was missed in a gap, and requested full
// snapshots. While any is due, one goroutine of the Informer reads lists beside the watch (comparer), page by page. One
// list serves all sinks that are compared with the same part of the stream. Watch and reader queue records by turns
// (turns.go). The reader's turns are of at most 32 objects, and it waits for its sinks before each
// (informer_compare.go):
//
//	readDue                wakes up when a comparison is asked for, or was begun for a gap
//	  read                 lists a page; take collects its objects
//	    compareWaiting     32 of them, in one turn
//	      judge            one for one sink: left to the watch, as the sink has it, changed, or another one of the name
//	    turnPage           what the sink has and the page has not are suspects
//	  finish               once the watch has passed the list, suspects are gone; then snapshot.end
//
// A resourceVersion orders all states of a resource, so unlike with databases (the DBLog paper) no watermark is needed:
// what a sink was told last of an object, the version of the listed state, and the position decide (listener.Judge).
// What is newer than the position is left to the watch, and the comparison ends after it. An object that the sink has
// and that is not listed is a suspect until the watch has passed the version of the list: if it has not brought a
// delete by then, it never will. In a list without an order, the suspects are known only at its end. Its pages may be
// of several versions: it may lack what was told after the oldest of them, and the watch has to pass the newest.
//
// A page that fails is read again, smaller. If the server has forgotten the version of the list, the list goes on at a
// newer one. A page counts only if one watch was open all the while: after another one is opened, the server's answers
// may be of another history.
//
// The last record of a comparison is held back until it is known to be the last (holding), so that formats can mark it.
//
// # Histories
//
// A position means something in one history only. Before each watch the server is asked for the uid of kube-system and
// for its present version. After a failure in the same life it is also asked for the last object that was told, at
// exactly the position (proof): a restored etcd that has overtaken the position answers differently. Each history has
// its own name (change.NewEpoch), which is part of every id. Versions of another history say nothing about an object,
// because a restored etcd may assign the same uid and version to another body.
//
// A restored etcd that has overtaken the position is not noticed if the object of the proof is older than the restored
// state, if the server has compacted the position, or in a life that has told nothing yet. The next resync corrects the
// differences then.
//
// # Decisions
//
//   - Objects stay raw bytes. Decoding and marshalling costs many times more CPU (make bench-kafka) and changes
//     numbers, key order and unknown fields.
//   - The Reflector instead of a watch loop of our own: API servers are tested with its rules for 410, 429, time
//     limits, short watches and backoff. Its list is not used, because it holds all objects in memory.
//   - HTTP/1.1 for up to 16 streams: one connection per watch costs less CPU, and a stalled watch's bytes stay in the
//     kernel. Above that, one shared HTTP/2 connection costs less.
//   - No request waits for longer than 50 s for a server that sends nothing, and no watch for much longer than its time
//     limit (guard.go). A connection that a balancer has forgotten looks like a quiet one. client-go pings HTTP/2
//     connections. Over HTTP/1.1 watches end after 45 s: no other sign of life is certain, since a resource that does
//     not change has no bookmarks. A second watch beside a silent one was rejected: it costs as many requests.
//   - A busy connection is read in pieces of up to 512 KiB (aheadConn), below TLS, which asks for 32 KiB.
//   - A position from a watch frame is incomplete, and a watch resumes one version below it: several events can share a
//     version, since Events that expire together are deleted in one etcd transaction.
//   - A first start waits for the server's cache of the resource (watchable), for two seconds at most. A watch from
//     before the cache is refused. For a custom resource that nobody else watched, that was a gap in a stream that had
//     just begun. To begin anew without a gap was rejected: the begin may be in the sinks already.
//   - Before each watch the server is asked where it stands. A watch from a version that the server has not reached is
//     silent until then, and loses everything in between.
//   - A quiet stream without bookmarks moves its position by two proofs together, a silent watch and an equal list
//     (informer_begin.go). Silence alone was rejected: a watch at an API server that is cut off from etcd is silent,
//     too.
//   - The order of a list is proven by a continue token or by the end of the list, never assumed (isRange). Before
//     that, nothing that the list has passed is reported as gone: an aggregated API server may sort differently.
//   - No continue token is saved. It is the server's own, lasts for minutes, and proves nothing without an order.
//   - A stream whose resourceVersions cannot be ordered is refused (list.go). If contents were compared instead,
//     updates would have equal ids, and consumers would drop them.
//   - An object that cannot be read becomes a gap for its key, without a dead letter, since none of it could be
//     redacted (I9). Ending the stream instead would let everybody who may write objects stop it.
//   - A list of custom resources has its metadata last, so the server is asked for its version first, and the list is
//     read at exactly that version. After five lists of another version the stream is refused.
//   - Kind and apiVersion are added to list items of built-in types, which lack them, so that an object looks the same
//     from list and watch.
//   - A full snapshot is ahead of its sinks by what they take in about 25 ms, and not by a fixed number of bytes: that
//     is how long live changes wait behind it, whatever the sink.
//   - A 410 is one server's word, too: each has a watch cache of its own. It is believed when it was repeated over
//     other connections for some seconds, or when the Leases of the servers' identities say that there is only one. All
//     streams share each new connection. To use each server's own address was rejected: an exporter outside of the
//     cluster knows only the balancer's.
//   - A definition was changed if its generation was, not only the version of its last write: upgraded API servers
//     write the status of definitions, and forget nothing then.
//
// Discovery:
//
//   - Discovery is polled. Watching CustomResourceDefinitions and APIServices needs more rights, reports a definition
//     before it is served, and says nothing of what an aggregated server adds. Unchanged answers cost two small
//     requests.
//   - Discovery is read with client-go's generic REST client (discovery.go). Its discovery client and typed clients
//     link the code of every type of Kubernetes, a fifth of the binary.
//   - A resource is gone if etcd does not have its CustomResourceDefinition any more. A catalog that lacks the
//     resource, and a 404 at its path, are one server's word, and another one may serve it. So a built-in or aggregated
//     resource is never gone, and a stream that gets a 404 tries other connections.
//   - An Informer reads one version of its resource, to which its records point. Another version begins another
//     Informer.
//   - A stream that is over is forgotten, and not kept without objects: its resource may come back with other objects
//     at old versions, about which a position says nothing.
//   - Rights are found out by trying. An access review answers for one verb of one resource, and would have to be
//     repeated.
//   - A Gate lets 32 streams begin at once, each until its watch is open, for five seconds at most: a list that waits
//     for a stuck sink must not hold up the streams of other sinks. A limit of requests a second alone made every
//     stream wait for the last one.
//   - Streams share the answer to the question for the uid (client.go). An answer counts if its request began after the
//     stream's last watch and last failure, and at most a second ago: so it proves as much as an answer of the stream's
//     own. Each stream asks by itself where the server stands, once: resources may be in different etcds, whose
//     versions cannot be compared.
package source
