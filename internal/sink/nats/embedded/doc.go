// Package embedded runs a NATS server with JetStream inside the process, for development: the sink itself needs none.
// With the build tag noembedded there is none in the binary. A server takes 9 MB of it, and 5 MB of the memory of a
// process that never starts it: that of the image, for one.
package embedded
