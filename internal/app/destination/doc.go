// Package destination defines how each kind of sink is built, read back, routed and distinguished from others. Apart
// from package config, which has their keys, and what is special about standard output, it is the only package that
// knows which kinds there are. It also knows what type the values of a sink's records have (types.go).
//
// Decisions:
//
//   - Of (kinds.go) knows the sinks. The keys of a kind are typed fields in package config, and config.Sink.Kind
//     tells the kind by which field is set. They cannot come from the registration: the reference and the JSON Schema
//     are made from the fields, where there are no sinks, and a registry in config would be a cycle or package state.
//   - A destination is a struct with functions. An interface would have ten methods, most of which a kind leaves empty.
//   - Two places are the same only where that is certain. Servers that have other names are taken for others: a wrong
//     refusal would keep a right configuration from starting, and the sink fences a second writer anyway (I10).
//   - A document with the API server's schemas is large (megabytes), and a hash in its index says whether it has
//     changed. A run keeps one document and the index (types); a command asks for each document once (Schemas).
package destination
