// Package verification compares what a sink has with what the cluster has, while both go on. The comparison itself is
// pure, in package verify.
//
// Decisions:
//
//   - It lists first and reads the sink then, so the sink is the newer of both. A difference counts only below a saved
//     position (I1), or if a second list at exactly the position shows it, too.
package verification
