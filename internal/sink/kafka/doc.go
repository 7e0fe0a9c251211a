// Package kafka is the sink that writes to topics of Apache Kafka.
//
// It encodes record batches itself (package batch) and sends them through package wire, so a batch has its producer,
// its epoch and its sequence for good when it is encoded. The same bytes go out until they are acknowledged, one batch
// at a time in each partition: Kafka then stores each batch once and in order, whatever connections and brokers do
// (KIP-98).
//
// A Write is sorted by partition, and each partition's messages are cut into batches. Many partitions are sent at once,
// and batches to one broker share requests. The topics are the sink's log: a mark is an offset per partition, and Open
// reads what lies after it. Open also settles what an earlier Write of this process left in doubt, gets a producer id
// and makes sure of the topics. In transactional delivery each Write is a transaction.
//
// The parts of a Sink, each of which uses only those before it: brokers (the connection, and what is tried again),
// known (the topics of the mark), catalog (topics and their partitions, those that data chose, and other clusters'
// records), right (the right to write, and the fence) and sender (a Write sorted by partition, and its batches until
// they are durable). A fetcher reads logs, for all who do.
//
// Decisions:
//
//   - The same bytes under one producer id, epoch and sequence, instead of a client that encodes again: Kafka knows a
//     repeated batch by its sequence only, and silently accepts other content under a known one. A batch refused for
//     its size is the exception: it was never appended, and the next batch has its sequence.
//   - Error 45 (out of order sequence) is lost data: with one batch under way the broker lacks the one before. Other
//     clients take a new producer id there and hide the hole.
//   - A mark also has each topic's id (KIP-516): offsets alone would match a topic that was deleted and made again.
//   - A topic keeps the partitions that it was first written with. Moving keys would cost every consumer its order, at
//     a moment that somebody else chooses.
//   - What data chose cannot end the sink (catalog.shun): records of a topic that cannot be written to are dead
//     letters. Labels make a bounded number of topics. What a wildcard stands for is data in each life (Options.Found):
//     a definition that somebody installs must not keep the sink shut after a restart.
//   - Logs are searched for another cluster's records before anybody is fenced (catalog.inspect): after the mark, or at
//     both ends without one. Reading whole logs would take as long as they are.
//   - What others write beside the sink is looked at, too (inspectOthers): an acknowledged offset above the expected
//     one shows it. Two clusters that begin at the same moment both saw an empty topic. A claim before the first record
//     would be read by consumers of idempotent delivery. In a topic that is shared rightly the looks become rare.
//   - A record of another cluster under our name ends the sink, whoever chose the topic. To reject the messages alone
//     would put the notes of them into the other's topic.
//   - The sink is told its topics beforehand, so that every mark has all of them. One that data chose is in the saved
//     mark before its first record (Announce). Otherwise a crash before the next mark would lose sight of it.
//   - What only the broker can refuse is rejected one Write later. Nothing may be written after a rejected message,
//     and partitions do not wait for each other. So the refusal is remembered, the sink is opened again, and the next
//     Write rejects the message before it sends anything.
//   - The mark has the form of topics and keys (Options.Form). Another form leaves old keys in a compacted topic for
//     ever, so Open refuses it (catalog.outdated), or ends all keys that live (endKeys) and says that the log lost what
//     it had, for which the pipeline sends everything again. The keys are read from the log: no code knows old forms,
//     and each tombstone is in the partition that has the key. A tail that ends keys is a loss, too: so a kill before
//     the new mark is saved needs nothing in the state.
//   - Message.Partition chooses the partition, where the key has a registry's id in it. Topics of marks without a form
//     go by the key (topicMark.ByKey), as they began.
//   - Messages of one id share a batch: a delete and its tombstone are in the log both or not at all.
//   - What proves that something else is in the log waits for it (plan). A newer state of an object in another
//     partition is such a proof: by it, recovery takes the older ones for written. So is a frame, which waits for
//     all of its resource, in whatever topics. Only these messages go later, beside others. To end the Write there,
//     for any sink, was refused: each change of a label that chooses topics would cost a transaction, and NATS keeps
//     an object's order whatever the subjects are.
//   - Tails are read by a reader of committed records, as all logs are. So Open waits for a stranger's open
//     transaction, which its timeout bounds. Open first waits until the leader's own end is replicated (LogEnds).
//   - Idempotent delivery is fenced by an empty, aborted transaction (right.fence). Its markers make every partition
//     know the new epoch, so a late batch of a killed process and an older exporter are refused. A transaction per
//     batch would do the same for some round trips each. Tails are read after the fence.
//   - A request for a producer id takes the right also when a broker finds it in a socket after its sender has died, or
//     has asked again (measured: Kafka 3.9 and 4.1). An epoch does not tell that from another exporter. The coordinator
//     keeps the transaction timeout of the last request (KIP-664), so that is the sign (claim): who asks uses a common
//     one, and who has got the right asks once more with its own. Where there is no other's sign for ten seconds, Open
//     takes the right back, and then reads the tails. It is no lock: only epochs keep writers apart. Signs in a topic
//     would need a topic that all exporters of the id know. To ask as the last owner only (KIP-360), whose epoch is
//     saved, would give two exporters on copies of one state the same epoch.
//   - A Write ends when all of it is durable, so its partitions may wait for each other. It goes round by round, with a
//     batch of each partition, and batches to one broker share requests (wire.ProduceAll), up to the bytes of Java's
//     max.request.size: for small Writes to 12 partitions that is half of the CPU time (measured). A batch that failed
//     goes alone until it is durable.
//   - The transactional id is claimed again twice a day, since coordinators forget ids after a week. Not covered are an
//     owner that sleeps longer than producer.id.expiration.ms, and the rare open where the coordinator runs out of
//     epochs.
//   - A Write without an answer for an hour is opened again, far below the day after which brokers forget producers.
//   - What compression does not make smaller goes uncompressed, so a batch that is cut by its uncompressed size fits.
//   - Signals are read from a place that the state has, without a group of consumers: a rebalance would be a second
//     idea of who leads. A topic is known by its id (KIP-516), since one that is made anew has other signals at the
//     same offsets; what is as old as what was read of the one before is refused.
//   - The topic of signals is looked at once a second, over connections of its own. A long fetch would save requests,
//     and would not see that the topic is another one.
package kafka
