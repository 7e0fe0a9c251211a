// Package scan steps through JSON as bytes. It tells where the members of objects and lists are, and proves on the way
// that the text is JSON: it accepts exactly what encoding/json accepts. It knows no clock, no goroutine and no I/O.
//
// Decisions:
//
//   - What is stepped over is checked to the last comma. What reads a watch checks less (internal/source/frame): behind
//     an object's metadata not even its brackets. A rule that trusted the server's brackets would find its paths
//     elsewhere than a reader does, if it is wrong, and a Secret's value would leave (I9). The proof costs 7 us for 12
//     KiB, a sixth of encoding/json's, since strings are looked at by words of eight bytes.
//   - A text that was proven once is not proven again (Proven): where no path leads, only brackets and quotes count
//     then, by the words of internal/source/frame (Balance). Who asks for it has the proof of these very bytes.
//   - A cursor breaks instead of failing, so that walks have no branch for what never comes; one question at the end
//     tells. A callback for every value would cost more than the whole scan.
package scan
