// Package sim is the deterministic simulation: a world is played from a seed, and a judge says what each sink must end
// up with.
//
// What is real is the whole line: source.SharedInformer, listener and pipeline.Run, checkpoint.Store on Pebble,
// encode.Encoder. The exporter puts them together as package app does. What is simulated is what lies around it, in a
// testing/synctest bubble with a clock of its own: the API server (a model of etcd after an http.RoundTripper: pages,
// watches, bookmarks, 410 in both forms, broken bodies, events that the server loses or sends twice, deletes that share
// a revision, compactions, restarts), the sinks' logs (plain ones and partitioned ones, with every fault that the
// contract allows, and with what a killed life had sent and comes late), and the disk, which loses what was not synced.
//
// Some worlds have an initial snapshot of many pages, which is interrupted again and again while its objects change: no
// change after its first begin is missing without a gap. Some have a server that lists by namespace and name. In some
// the server comes to prefer another version of a resource, in which the exporter then goes on.
//
// In some worlds full snapshots of many pages are asked for while the objects change, the server forgets the version of
// the list, and the watch lags behind it.
//
// In some worlds namespaces are configured, a stream each. In some streams leave the configuration for a life and come
// back; in some namespaces become all, or the reverse. What is not configured in the last life stays as the sinks were
// told last, and nobody asks whether that is still so.
//
// In some worlds the rules become stricter: from one life on a field is left out of all objects, and no sink is given
// an object that has it (I9), wherever the object comes from.
//
// In some worlds half of all updates do not matter, and are not told. None is missing that does.
//
// In some worlds a sink's schema registry has no schema of a resource for a while, so that its format cannot encode the
// resource's records. The sink is not offered that stream, and goes on from its position when the schema is there.
//
// In some worlds a life begins with an earlier state than the one that was saved last (I11), as it would with a log of
// the state that lags behind, or with a copy of the disk; the cluster and the sinks' logs are further on. What begins
// does not lag: the state is not one from before the first position of a stream, the first mark of a sink or an epoch,
// since that alone says what was there before. Nor is it one from before a log lost records, which has grown over the
// older mark since, or the server an event, of which a full snapshot may tell once more; and no other streams are
// configured meanwhile. In many such worlds a sink leaves and returns before, or a stream is compared after a gap
// though the server remembers everything.
//
// In some worlds the exporter is a task of two or three members, each with a disk of its own, which may be lost. A life
// is a term of one of them. It claims the log of the state, goes on from its own disk or from what the log has, as
// package task does, and opens the sinks. The log is package statelog's, over slots whose last writer fences the
// others. It is cut so finely that units are torn and slots are used again; its broker is away now and then, and breaks
// writes in their middle. The Lease is a hint: whoever has lost it may be dead, run on without knowing, or sleep, even
// while it takes over, wake up later, and be fenced, or fence the leader, which then begins anew. In many such worlds
// it sleeps while a sink is away or stopped, and opens that when the next leader has. A member proves in the log that
// it leads whenever it has opened a sink, as in package task. What has begun does not lag here either: another member
// follows when the log has the first position of each stream and the first mark of each sink. Another history, lost
// records and events, other streams, and a standby's copy of the log are not played with it.
//
// Partitions that are added to a topic are not played. The contract of a sink hides them: the Kafka sink goes on with
// those that it first wrote to (TestI3KeysStayWhenPartitionsAreAdded), and a topic that was made anew is a log that has
// lost records.
//
// A seed makes a script: sinks, and lives of the exporter with what happens in them. Most lives end in a crash at one
// numbered step of the line: a request, a page or frame, the begin, middle or end of a sink's write, an operation of
// the disk. The last life is left in peace; then the judge reads the logs. It shares no code with the line but the
// values of package change. At each save it compares the rows of each sink with the fold of that sink's own log as far
// as its mark: they have nothing that the log has not (I1), and all that it has (I5). It holds I6 to the queues, I7 to
// each stop and I9 to each write; in the end I3, I4 and I8 to each log.
//
//	go test ./test/sim -run TestSimulation -seed N     plays one seed and shows what happened
//	go test ./test/sim -run TestSimulation -seeds N    plays so many; make sim plays 100,000
//
// What a script orders is the seed's alone; how goroutines interleave is not, so a failure may need -times. Scripts of
// bugs that were found are in testdata, and are played each time.
//
// How many seeds it took to notice that a rule of package listener was taken out (its doc.go has their names):
//
//	known      1    gap        2    parts       1    other     34    ahead    322    newer      8
//	below     18    scope    330    torn       14    join      21    another    2
//
// Of package checkpoint: that what was read from disk, and written, becomes part of the fold is noticed at once.
//
// With -members 100, and -without what is named:
//
//	fence: a member that has lost the lead may still write                     5
//	proof: a member writes to a sink that it opened, though another leads   not in 400
//	order: a state is saved, also in the log, before the sink has the record   9
package sim
