// Package deadletter keeps what a sink refuses for good, such as an object above a broker's size limit: each record in
// a file of its own, whole, until somebody sends it again or deletes it.
//
// A file is one line of JSON, the Letter, then the message's value as the sink was given it, then the object if the
// value does not contain it. So a list reads first lines only, and nothing is written anew, whatever the value is.
//
// A rejected record goes first into its file, synced with its directory, then onto the wire as a gap, then into the
// saved state. A crash in between repeats the rejection, which finds the letter there. A replay claims the letter by
// moving its file, writes the event, and removes the file. Whoever opens the sink at its mark finds the event of a
// claimed letter in the log and removes the letter, or puts it back. Standard output has no log and may be told twice.
//
// Decisions:
//
//   - Files instead of a topic of the same broker: a broker that refuses 2 MB in one topic refuses them in another.
//   - One file per letter: a list reads first lines, a sent letter is one unlink, and a damaged file hides no other.
//   - The name is a hash of the object's state, not of the event: a resync that repeats the version does not fill the
//     disk.
//   - A letter names the rules that shaped it. Letters under other rules are written anew at the start (Dir.Mend), so
//     that today's rules hold for them (I9).
package deadletter
