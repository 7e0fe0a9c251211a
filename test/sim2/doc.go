// Package sim is the deterministic simulation: a world is played from a seed, and a judge says what each sink must end
// up with.
//
// What is real is the whole line: source.Session, and in it client-go's Reflector, pipeline.Run, checkpoint.Store on
// Pebble, encode.Encoder. The exporter puts them together as package app does. What is simulated is what lies around
// it, in a testing/synctest bubble with a clock of its own: the API server (a model of etcd after an
// http.RoundTripper: pages, watches, bookmarks, 410 in both forms, broken bodies, events that the server loses or sends
// twice, deletes that share a revision, compactions, restarts), the sinks' logs (plain ones and partitioned ones, with
// every fault that the contract allows, and with what a killed life had sent and comes late), and the disk, which loses
// what was not synced.
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
// resource's records. The sink misses that stream alone, and only when the others have waited for half a minute; where
// nothing else is wrong with a sink, nobody waits for longer, and nothing of the stream is in line for it.
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
// values of package change. While the line runs it holds I1 and I2 to each commit, I5 to each state that is opened
// again, I6 to the queues, I7 to each stop and I9 to each write; in the end I3, I4 and I8 to each log.
//
//	go test ./test/sim -run TestSimulation -seed N     plays one seed and shows what happened
//	go test ./test/sim -run TestSimulation -seeds N    plays so many; make sim plays 100,000
//
// What a script orders is the seed's alone; how goroutines interleave is not, so a failure may need -times. Scripts of
// bugs that were found are in testdata, and are played each time.
//
// How many seeds it took to notice that a part of the line was taken out:
//
//	fsync before a commit returns            5    skip of what an earlier life delivered  32
//	contiguous prefix of acknowledgements    1    skip of what a failed batch delivered    1
//	draining before a reconcile              1    skip of what the inventory has           2
//	tail read when a sink is opened         23    delete detection in the merge            3
//	uid change detection                     2    sink-only objects                       23
//	the gap record                           1    positions and inventory in one batch     1
//	the order of a spool's two parts         1    the version of an initial snapshot       8
//	the gap where that is forgotten         10    the tail after its end                  4
//	what supersedes it                     432    the proof of a list's order             74
//	marks that carry ids                   133    what an absent sink misses              18
//	what its log has when it returns       421    draining before another version       72
//	saved pending snapshots of a stream that goes on   109    today's rules for what is on disk       31
//	what a log has of a stream that left   462    what its disk has                      425
//	what a stream inherits                   6    the objects among that                  78
//	a snapshot leaves to the watch what is ahead of it  21
//	what the watch told since the list       5    deletes among that                       8
//	what was told since the mark             2    the mark itself                          4
//	what is held, or a sink's alone, before a change of the watch 13
//	draining before the gap of one sink     16
//	what is not listed waits for the watch 282    and is told then                         7
//	the mark of a position that is compared 54    draining before the gap of all         395
//	what the watch finds in another's place 65    going on where a comparison was        904
//	deletes of one version beside it       303    what its position has passed over     1810
//	the tail that is ahead of its end     1818    the last words of a killed life         27
//
// With -back 100, where the state is put back (I11):
//
//	what a full snapshot gave               61    deletes of what the state does not have    108
//	what a delete is older than            137    what a gap has passed over before one      143
//
// With -members 100, and -without what is named:
//
//	fence: a member that has lost the lead may still write                     4
//	proof: a member writes to a sink that it opened, though another one leads 91
//	order: a state is saved, also in the log, before the sink has the record   9
//	disk: the log goes on while records are on the leader's disk alone        11
//
// With -members 100, too:
//
//	what a later object's delete says of its name 3394
//
// With -gates 100, where sinks lack schemas:
//
//	the end of the others' patience         10    its beginning                            1
//	the absence in the state                 1    what the log holds of the stream        21
//	missing it only when all is saved       65    the return when the schema is there      5
//	the return only then                   290    where nobody gains by that, no absence 684
//	nothing is in line meanwhile             6    no room is taken meanwhile             626
//
// With -ignore 100, where half of all updates do not matter:
//
//	none is ignored beside a snapshot      313    nor what a comparison finds             2604
//
// Not noticed in 2,000 seeds, and held by tests of internal/source alone: that a snapshot ends after what it left to
// the watch, that a page is compared beside one watch, and the delete of an object whose name another has got. Not
// noticed in 1,000 with -back 100: that a log with a delete waits for the watch to pass the snapshot, which testdata
// holds, and what a full snapshot gave of what is on disk or was told before, which tests of internal/redo hold. Not
// noticed in 1,000 with -gates 100, and held by tests of internal/pipeline: the deletes of a missed stream that are on
// disk, what a log has that is read later, and that several schemas are waited for together.
//
// Not noticed in 3,000, and held by tests of internal/redo: that a delete told in another history closes no name,
// that a page may be listed later than the first, and that what a reconcile has left to the watch is not gone. Not
// noticed in 2,000 with -gates 100, and held by testdata and tests of internal/redo: that a gap on disk of one
// namespace is none of another, that a missed object's delete comes before that of the next one, and that what a sink
// was told is gone is not to come.
package sim2
