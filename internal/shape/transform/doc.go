// Package transform takes out of objects what must not leave the process: fields that nobody wants, and values that
// nobody may see. It rewrites an object's JSON as bytes: what no rule concerns is copied digit for digit.
// It knows no clock, no goroutine and no I/O.
//
// Decisions:
//
//   - Keyed hashes instead of asterisks: a consumer still sees that a value changed, and changed back. The key is
//     random and in the state, or configured; without it a guess cannot be tested.
//   - Only resources with rules pay for the look inside.
//   - One pass cuts and hashes what is proven to be JSON (package scan). It notes only what goes: what stays is copied
//     in as few pieces as there are cuts, and an object of which all stays is not copied. The proof says where each env
//     is, which may be anywhere; a list of variables that is without a hidden one is stepped over.
//   - The paths of all rules are one tree, and a value has a set of its nodes. To make one node of each set was
//     refused: paths with wildcards can have more sets than there is memory.
//   - A worker has the memory of its last object, and who applies rules keeps workers: this package knows no pool.
//   - Whether a variable is hidden may be written after its value, and the value may hold variables. So all within the
//     outermost env are noted before it is written: to look ahead in each would cost the square of their depth, and
//     whoever writes objects chooses that.
package transform
