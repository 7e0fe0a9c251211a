// Package file is the sink that writes lines to a file or to standard output.
//
// A message is its value and a newline. Its id is in the value, where the format puts it there, and nothing else of
// the message is kept: a tombstone, which has no value, leaves no line. A newline between two tokens of a value's JSON
// becomes a space, so that a message is always one line.
//
// The file is this sink's log. What lies after a mark is read back when the sink is opened, through the rotated files
// and to the end; of each line the string "id" on the top level counts, if it is an id of ours. So a file takes only
// formats with an id there. Standard output cannot be read back, and may repeat lines after a crash.
//
// Decisions:
//
//   - A mark is an offset and a checksum of what is around it, without a name or inode, so it survives rotation,
//     renames and restored backups.
//   - A failed write or sync cuts the file back to its durable length and writes again: a second fsync after a failed
//     one reports a false success.
//   - What lies after a recognised mark may be cut, because it is sent again: an unfinished line, or zero bytes after
//     a power failure.
package file
