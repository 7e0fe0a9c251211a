// Package chain turns the updates of one sink into patches (RFC 6902) where it can prove what they are folded onto. It
// knows no clock, no goroutine and no I/O.
//
// A patch is right if the newest state of the object in the sink's log is the one that the patch was made from. So a
// Chain remembers of each object what it has last seen go out: the version, which becomes the patch's base, and a hash
// of the form. An update goes out as a patch only if its Before is that form. Whatever was left out, merged, rejected,
// cut or hashed in between makes Before another one, and the whole object goes out. So does each first record, since a
// Chain begins empty and is emptied when a write fails, and at a gap.
//
// Decisions:
//
//   - What a sink has is remembered in memory and not saved. To save it would cost a write for each record of each
//     sink, to spare one whole object per object and start.
//   - What is not proven by the form is not proven: to follow what filters, queues, tails, spools and cuts do to a
//     record would be a second account of all of them.
//   - Forms and objects are known by hashes of 64 bits with a random seed, at which nobody can aim. Two objects of one
//     hash share a place, and the form, which names its object, tells them apart. Names would cost what tenants choose
//     to give them (I6).
//   - A gap in one stream empties the chain of the sink for all streams. Gaps are rare, and to forget one stream each
//     entry would have to name it.
package chain
