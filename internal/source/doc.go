// Package source reads resources from an API server and pushes their changes into the line.
//
// A Session is the life of one resource's stream. It reads with one Stream after the other: a new one when the server
// prefers another version, none while nobody can tell whether the resource is served. A Stream runs client-go's
// Reflector over a ListerWatcher of its own, the watcher, and a decoder. Each change becomes a change.Record as soon as
// its frame is read.
//
// Three read what a Stream holds: the watcher, a relist and a reading. The other parts of a Stream know nothing of it,
// and each is a file. What is told goes through the output, and what a reconcile tells through a difference. The origin
// is what is known of the server: the collection asks it, and trust says which of its answers count. The schedule knows
// what is due, and the turns who may put records in line. Most are pure: cursor, proof, versions, endings and silence
// judge what a watch brings, recent and place serve snapshots.
//
// # Interruptions
//
// A reconcile answers every interruption: list, merge with the inventory, emit the difference. It is a comparison
// (comparison.go): it begins while no watch is open, is read beside the next one, and goes on in the next life where it
// is interrupted. Another history alone is compared before the next watch (relist.go).
//
// The position of a stream that is being compared is marked so (change.InitialPosition, change.ComparedPosition). It
// moves with the watch all the same. What the inventory has of what is older than the position is a part, so it proves
// nothing of what it does not have: the deletes of the newest version are saved beside it (Inventory.Ended).
//
// # Snapshots beside the watch
//
// A snapshot is read beside the watch, by one goroutine (snapshots.go), in any number of pages of any versions. A
// comparison comes before full snapshots. Neither begins before the first watch of a life, or stops one. Watch and
// reader push by turns (turns.go), each of at most 32 objects, and the reader waits for its sinks before it takes its
// turn (pace.go).
//
// A resourceVersion orders all states of a resource, so no watermark is needed, as it is for databases (the DBLog
// paper). For each listed object it is known what was told last: what was told before a save point is in the
// inventory when that is reached (savepoint.go), and what was told since is remembered (recent.go). judge.go says what
// follows. An object that the sinks have and that is not listed is a suspect until the watch has passed the version of
// the list: if it has not told of a delete by then, nobody will (suspects.go). What the watch finds in the place of an
// object whose delete lies in a gap is told after that delete.
//
// What is newer than the watch's position is left to the watch, and the snapshot ends after it. A snapshot goes on
// after every failure with the page that failed, and after a list that the server has forgotten at a newer version.
// A page counts only if one watch was open all the while: after another, the server may speak of another history. A
// reconcile ends the reader, and the snapshot begins anew after it.
//
// The line is drained, with the watch waiting, before a gap: from there on the position is another, or a sink must be
// told first what it has missed, or its log has lost. And before drift is told: after a crash the position says which
// records of a log no watch brings again.
//
// # Histories
//
// A position means something in one history only. Before each watch and each reconcile the server is asked for the uid
// of kube-system and for its present version. After a failure it is also asked for the last object that went in line,
// at exactly the position (proof): a restored etcd that has overtaken the position answers differently. Each history
// has its own name (change.NewEpoch), which is part of every id. A reconcile of reason epoch trusts no version and
// emits every object, because a restored etcd may hand out the same uid and version for another body.
//
// A restored etcd is not noticed if the object of the proof is older than the restored state, if the server has
// compacted the position, or in a life that has delivered nothing yet. The next resync corrects the differences then.
//
// # Decisions
//
//   - Objects stay raw bytes. Decoding and marshalling costs many times more CPU (make bench-source) and changes
//     numbers, key order and unknown fields.
//   - The Reflector instead of a watch loop of our own: API servers are tested against its rules for 410, 429, time
//     limits, short watches and backoff. Its list is not used, because it holds all objects in memory.
//   - An inventory instead of a relist that repeats everything: only what was delivered can tell what was deleted.
//   - HTTP/1.1 for up to 16 streams: one connection per watch costs less CPU, and a stalled watch's bytes stay in the
//     kernel. Above that, one shared HTTP/2 connection costs less (make bench-source, make bench-scale).
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
//     (quiet.go). Silence alone was refused: a watch of an API server that is cut off from etcd is silent, too.
//   - The order of a list is proven by a continue token or by the end of the list, never assumed (order.go). Before
//     that, nothing is reported as gone for being passed over: an aggregated API server may sort differently.
//   - No continue token is saved. It is the server's own, lasts for minutes, and proves nothing without an order.
//   - A stream whose resourceVersions cannot be ordered is refused (refusal.go). Comparing contents instead would
//     deliver updates under equal ids, which consumers drop.
//   - An object that cannot be read becomes a gap for its key, without a dead letter, since none of it could be
//     redacted (I9). Ending the stream instead would let everybody who may write objects stop it.
//   - A list of custom resources has its metadata last, so the server is asked for its version first, and the list is
//     read at exactly that version. After five lists of another version the stream is refused.
//   - Kind and apiVersion are added to list items of built-in types, which lack them, so that an object looks the same
//     from list and watch.
//   - A full snapshot is ahead of its sinks by what they take in 25 ms, measured, and not by a number of bytes: live
//     changes wait after it that long, whatever the sink.
//   - A snapshot remembers deletes since its list, and other changes since the save point before the last. All that a
//     sink could be told of an object would be needed otherwise, or a list of each object anew. Where even that is too
//     much and no list succeeds, the watch waits for the sinks once, and all is forgotten.
//   - The last record of a snapshot is held back until it is known to be the last (held.go), so that formats can mark
//     it.
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
//   - Discovery is read with client-go's generic REST client (document.go). Its discovery client and typed clients link
//     the code of every type of Kubernetes, a fifth of the binary.
//   - Gone is proven by etcd: it has the CustomResourceDefinition no more that the resource had. A catalog that lacks
//     the resource, and a 404 at its path, are one server's words, and another may serve it. So a built-in or an
//     aggregated resource is never gone, and a stream that is told 404 tries other connections.
//   - One Stream per version instead of a Stream that changes: records in line point to the resource they were read
//     from.
//   - A stream that is over is forgotten, not kept empty: its resource may come back with other objects under old
//     versions, and a position older than all of them proves nothing.
//   - Rights are found out by trying. An access review answers for one verb of one resource and must be repeated
//     anyway.
//   - A Gate lets 32 streams begin at once, each until its watch is open, for five seconds at most: a list that
//     waits for a stuck sink must not hold up the streams of other sinks. Built-in resources go first, then streams
//     with a position. A limit of requests a second alone made every stream wait for the last one.
//   - Streams share the answer to the question for the uid (shared.go). An answer serves whose request began after the
//     stream's last watch and last failure, and a second ago at most: so it proves as much as one of its own. Where the
//     server stands each stream asks itself, once: resources may be in other etcds, whose versions cannot be compared.
package source
