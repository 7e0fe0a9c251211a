// Package redo is what a sink's log holds beyond the saved state: the records that a crash kept from being saved. They
// come again, from the watch or in another shape from a reconcile, and are not written twice.
//
// It is pure: no lock, no clock, no I/O but what it asks the saved state (State, Ledger.Replays). line.Recovery has the
// lock.
//
//	Reader     reads ids, and says what the saved state knows of them (Ledger)
//	Reading    folds a log while it is read, so that nothing is kept of what is saved (I6)
//	Log        is what is left: tails by stream, which records take from, pass or end
//	tail       is one stream's: ids, deletes, the objects that they leave in existence
//	sinkOnly   is what becomes of those objects
//	foundIDs   are what was found in the log and may come again: a mark that lies after them carries them
//	Undeleted  are objects whose deletes a log has lost, or a sink has missed
package redo
