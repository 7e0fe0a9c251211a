// Package transform takes out of objects what must not leave the process: fields that nobody wants, and values that
// nobody may see. It rewrites an object's JSON as bytes: what no rule concerns is copied digit for digit.
// It knows no clock, no goroutine and no I/O.
//
// Decisions:
//
//   - Keyed hashes instead of asterisks: a consumer still sees that a value changed, and changed back. The key is
//     random and in the state, or configured; without it a guess cannot be tested.
//   - Only resources with rules pay for the look inside.
package transform
