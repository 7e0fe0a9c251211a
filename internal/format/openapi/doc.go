// Package openapi reads the schemas that an API server publishes: whether the objects of a resource can have what a
// path names, and what type they are. It knows no clock, no goroutine and no I/O.
//
// Decisions:
//
//   - Of a schema only what leads to a field and what says its type is read. What a schema leaves open, an object may
//     have.
//   - The library of Kubernetes for these documents decodes all of each into Go types, and needs as much memory as the
//     rest of the exporter. Whoever may make definitions decides how large a document is, so it is read schema by
//     schema, of which the text is kept up to a bound. Only what one kind leads to is decoded, and for one answer: Go
//     values take ten times the memory of the text.
//   - Where a type comes again within itself, the value is JSON text. What is written inline has a name by where it is:
//     types that look the same today may differ tomorrow.
//   - What validates and does not say a type (allOf and anyOf beside one, enum, pattern) is not looked at.
//   - Fields are in the order of their names, since documents do not tell the server's. The first three are those that
//     every object has.
package openapi
