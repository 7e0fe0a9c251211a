// Package delta finds what differs between two states of an object: as a patch (RFC 6902), and as the JSON Pointers
// (RFC 6901) of what changed. It goes through the bytes of both at once. It knows no clock, no goroutine and no I/O.
//
// Decisions:
//
//   - Bytes are compared, nothing is decoded: what is equal is stepped over without a look, and a patch has values
//     digit for digit. Equal values that are written differently count as changed, which folds to the same. Libraries
//     decode both objects, which costs many times more. evanphx/json-patch is the oracle of the tests.
//   - Whoever writes objects chooses their depth, their keys and how much changes at once. Below maxDepth a value is
//     replaced whole: each level compares what lies in it once more. A patch that becomes longer than allowed ends the
//     search, and so do pointers that are too many.
//   - Lists have a common front and a common end, and what lies between is compared by place. To find moved elements
//     costs the product of both lengths.
//   - An object with a key twice, or with one that no text of Unicode says, is replaced whole: which of its values
//     counts, readers decide differently.
package delta
