// Package source reads resources from an API server and gives their changes to the sinks.
//
// A SharedInformer is the life of one resource's stream, and its Informers are its watches: one that all sinks share,
// and others for sinks that are not where it stands. An Informer runs client-go's Reflector over a ListerWatcher and a
// decoder of its own, the feed. Each change becomes a change.Record as soon as its frame is read, and is offered to
// each seat: a sink as this watch sees it (package listener). What a sink was told, and where it stands, is the sink's
// own and not here.
//
// What the informers of a stream have in common is in common.go: who is given it, what is asked for, and which history
// is read. The origin is what is known of the server, and which of its answers count: the collection asks it. Most that
// judges the server is pure: proof, versions, endings, silence and sightings.
//
// # One watch, many sinks
//
// A watch begins at the lowest position of its sinks, and the others skip what they have by its number. A record is one
// for all of them, in one shape, with what was told of the object before it. A sink that has no room holds the others
// up for some milliseconds, and then leaves: it goes on with a watch of its own, and comes back to the common one when
// it has all that this one has brought.
//
// Before each watch the server is asked where it stands (standing), and each sink is told so (listener.Seat.Begin): it
// says what follows, which may be a gap and a comparison.
//
// # Comparisons
//
// What a watch cannot bring a comparison finds: a first snapshot, what lies in a gap, and full snapshots that are asked
// for. One goroutine of the informer reads lists beside the watch while any is due (comparer), page by page. One list
// serves all sinks that are compared with the same part of the stream. Watch and reader tell by turns (turns.go), each
// of at most 32 objects, and the reader waits for its sinks before that (informer_compare.go).
//
// A resourceVersion orders all states of a resource, so no watermark is needed, as it is for databases (the DBLog
// paper): what a sink was told last of an object, the version of the listed state, and the position say what follows
// (listener.Judge). What is newer than the position is left to the watch, and the comparison ends after it. An object
// that the sink has and that is not listed is a suspect until the watch has passed the version of the list: if it has
// not told of a delete by then, nobody will. Of a list without an order the suspects are known at its end, and its
// pages may be of several versions: it need not have what was told after the oldest of them, and the watch is to pass
// the newest.
//
// A page that fails is read again, smaller; after a list that the server has forgotten the next one is newer. A page
// counts only if one watch was open all the while: once another one is opened, the server may speak of another history.
//
// The last record of a comparison is held back until it is known to be the last (holding), so that formats can mark it.
//
// # Histories
//
// A position means something in one history only. Before each watch the server is asked for the uid of kube-system and
// for its present version. After a failure it is also asked for the last object that was told, at exactly its version
// (proof): a restored etcd that has overtaken the position answers differently. Each history has its own name
// (change.NewEpoch), which is part of every id. No version of another history says anything of an object, because a
// restored etcd may hand out the same uid and version for another body.
//
// A restored etcd is not noticed if the object of the proof is older than the restored state, if the server has
// compacted the position, or in a life that has told nothing yet. The next resync corrects the differences then.
//
// # Decisions
//
//   - Objects stay raw bytes. Decoding and marshalling costs many times more CPU (make bench-kafka) and changes
//     numbers, key order and unknown fields.
//   - The Reflector instead of a watch loop of our own: API servers are tested against its rules for 410, 429, time
//     limits, short watches and backoff. Its list is not used, because it holds all objects in memory.
//   - HTTP/1.1 for up to 16 streams: one connection per watch costs less CPU, and a stalled watch's bytes stay in the
//     kernel. Above that, one shared HTTP/2 connection costs less.
//   - No request waits for a server that stands still for longer than 50 s, and a watch not for much longer than it was
//     to take (guard.go). A connection that a balancer has forgotten looks like a quiet one. HTTP/2 is asked for a sign
//     of life by client-go. Over HTTP/1.1 watches end after 45 s: no other sign of life is certain, since a resource
//     that does not change has no bookmarks. A second watch beside a silent one was refused: it costs as many requests.
//   - A busy connection is read up to 512 KiB at once (aheadConn), below TLS, which asks for 32 KiB.
//   - A position from a watch frame is incomplete, and a watch resumes one version below it: several events can share a
//     version, since Events that expire together are deleted in one etcd transaction.
//   - A first start waits for the server's cache of the resource (watchable), for two seconds at most. A watch from
//     before the cache is refused, and where nobody else watches a custom resource, that was a gap of a stream that had
//     just begun. To begin anew without telling of a gap was refused: the begin may be in the sinks already.
//   - Before each watch the server is asked where it stands. A watch from a version that the server has not reached is
//     silent until then, and loses everything in between.
//   - A quiet stream without bookmarks moves its position by two proofs together, a silent watch and an equal list
//     (informer_begin.go). Silence alone was refused: a watch of an API server that is cut off from etcd is silent,
//     too.
//   - The order of a list is proven by a continue token or by the end of the list, never assumed (isRange). Before
//     that, nothing is reported as gone for being passed over: an aggregated API server may sort differently.
//   - No continue token is saved. It is the server's own, lasts for minutes, and proves nothing without an order.
//   - A stream whose resourceVersions cannot be ordered is refused (list.go). Comparing contents instead would
//     deliver updates under equal ids, which consumers drop.
//   - An object that cannot be read becomes a gap for its key, without a dead letter, since none of it could be
//     redacted (I9). Ending the stream instead would let everybody who may write objects stop it.
//   - A list of custom resources has its metadata last, so the server is asked for its version first, and the list is
//     read at exactly that version. After five lists of another version the stream is refused.
//   - Kind and apiVersion are added to list items of built-in types, which lack them, so that an object looks the same
//     from list and watch.
//   - A full snapshot is ahead of its sinks by what they take in 25 ms, measured, and not by a number of bytes: live
//     changes wait after it that long, whatever the sink.
//   - A 410 is one server's word, too: each has a history of its own, in memory. It is believed when other connections
//     have said it again for some seconds, or when the Leases of the servers' identities say that there is one. All
//     streams share each new connection. To follow each server by its own address was refused: who reads the cluster
//     from outside knows only the balancer's.
//   - That a definition was changed is known by its generation, beside the version of its last write: API servers write
//     the status of definitions, too, when they are upgraded, and forget nothing for it.
//
// Discovery:
//
//   - Discovery is polled. Watching CustomResourceDefinitions and APIServices needs more rights, reports a definition
//     before it is served, and says nothing of what an aggregated server adds. Unchanged answers cost two small
//     requests.
//   - Discovery is read with client-go's generic REST client (discovery.go). Its discovery client and typed clients
//     link the code of every type of Kubernetes, a fifth of the binary.
//   - Gone is proven by etcd: it has the CustomResourceDefinition no more that the resource had. A catalog that lacks
//     the resource, and a 404 at its path, are one server's words, and another may serve it. So a built-in or an
//     aggregated resource is never gone, and a stream that is told 404 tries other connections.
//   - An Informer is of one version of its resource: its records point to that. Another version begins another one.
//   - A stream that is over is forgotten, not kept empty: its resource may come back with other objects under old
//     versions, and a position older than all of them proves nothing.
//   - Rights are found out by trying. An access review answers for one verb of one resource and must be repeated
//     anyway.
//   - A Gate lets 32 streams begin at once, each until its watch is open, for five seconds at most: a list that waits
//     for a stuck sink must not hold up the streams of other sinks. A limit of requests a second alone made every
//     stream wait for the last one.
//   - Streams share the answer to the question for the uid (client.go). An answer serves whose request began after the
//     stream's last watch and last failure, and a second ago at most: so it proves as much as one of its own. Where the
//     server stands each stream asks itself, once: resources may be in other etcds, whose versions cannot be compared.
package source
