// Package frame scans what an API server writes: the frames of a watch and the pages of a list, both as JSON. It looks
// for an object's identity and leaves the rest as bytes, since decoding objects costs forty times more than needed.
//
// An object's bytes are copied once, with the cuts made, and stay as the server wrote them otherwise. One scan knows
// JSON of any form; of a key that comes twice the last value counts.
//
// The scan checks that quotes and brackets are balanced in what it steps over, and not what is between them. After the
// metadata of a frame's object it checks only that the frame ends with two braces: a frame has a type and an object and
// nothing else, an object its metadata once, and a line one frame. An API server writes valid JSON, and a frame that
// was cut off has no newline and is never scanned. For bytes that are not JSON, or for a frame with more in it, the
// answer is an error or an object that is no JSON either, and never a panic.
//
// An object that is refused is handed on without its JSON: nobody who writes objects can stop a list or a watch with
// one. What is longer than 64 MiB ends them; no API server takes an object of more than a few MiB.
package frame
