// Package nats is the sink that writes into a JetStream stream.
//
// The stream is this sink's log and belongs to it alone: a mark is a sequence of the stream, and opening at a mark
// reads what the stream holds after it. Every message says which sequence it expects to follow, so nothing is stored
// twice or out of order, whatever connections and servers do, and a second writer is noticed (I10).
//
// What a Sink does, by files: sink has the connection and the stream, which it makes and judges; log reads what the
// stream holds, and whose that is; message has marks, subjects and messages. It sends each batch with a publisher of
// its own (send); publish finds out what is stored when one has failed. write has Open, Write and
// the sweep of a bucket. Check and Reader are for those who only look.
//
// Decisions:
//
//   - Expected sequences instead of message ids (Nats-Msg-Id): a refused or lost message refuses all after it, and a
//     second or late copy is refused. Order and uniqueness need no memory in the server. Ids would let others write to
//     the stream, but the server forgets them, and they keep no second exporter out.
//   - One acknowledgement per message. The first message of a Write goes alone, and one message per object is under
//     way, so that a replaced writer stores nothing and no change overtakes another of its object. Of two writers that
//     collide, the second message of one may be stored behind the first of the other.
//   - No fast ingest (ADR-50): it needs nats-server 2.14, and saves nothing that shows in the whole line's CPU time.
//     No atomic batches: they are slower unless the server syncs always, which a client cannot see.
//   - Open does not fence. Nothing moves the end of a stream but a message, and consumers would see that. So a killed
//     exporter's last words are stored until a message of ours is acknowledged. They follow what Open has read without
//     a hole, since each fits in one place only, and are no more than may be under way: more is another exporter's.
//     Found in place of ours they are a sink.LateError, whenever that is; equal to ours they are as good. After a
//     message of ours the server refuses them, but the second of those under way may fit behind our first. Directly
//     behind it they are a LateError, too; behind more of ours, another exporter's.
//   - Nats-Expected-Last-Msg-Id would refuse those as well, and must not be used. Every replica checks it against an id
//     that catching up does not renew (nats-server up to 2.15.2): one that was away for long refuses the first message
//     after that, and stops for good.
//   - Only a leader is believed about where a stream ends: without one any replica answers, and may lack what was
//     acknowledged.
//   - A stream is found purged if no limit of its own explains what is missing. The mark says how many messages were
//     gone, and names one that was there at the last look. A purge that a limit in bytes explains looks like retention.
//   - The default stream has the cluster's name (K8S_{cluster}): a stream is one exporter's.
//   - A bucket is the only log of its sink, so its sequence is the mark, and a newer value of a key proves the older
//     ones. Frames use the stream's key with - for a name. A gap for a rejected object takes the object's key, since an
//     old value there would be wrong. Keys from before a lost log get a delete marker at the end of the first full
//     snapshot.
//   - Another cluster's records stop the sink, at the start, in check and after its mark (sink.Judge): under one name
//     each exporter would delete the other's objects for consumers.
package nats
