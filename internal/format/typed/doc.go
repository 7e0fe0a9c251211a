// Package typed has the types of objects, as Avro and as JSON Schema, and turns objects into values of these and back.
// What the types do not know goes into one field, the rest, so every object can be restored. It knows no clock, no
// goroutine and no I/O.
//
// Decisions:
//
//   - A type is what readers may expect, not what is checked: a stored object may be older than its CRD, and a server
//     may write null anywhere. What does not fit its type is null in its column, and whole in the rest. So a wrong or
//     hostile schema costs columns and no value, and rules that hide a value hide it here, too: a typed field has
//     nothing but what the object's bytes have (I9).
//   - One rest per object, the first field of its record, and not one in each record: columns within columns would have
//     a field more each. It is an object of the same shape that has only what the types lack; of a list, the keys are
//     indices. A field that is null in its column is whole in the rest, one that is not has a part there. So is an
//     object that has a key twice: no API server writes one.
//   - A value that a column can have nearly is in both, and the rest is what counts: 1.50, a time with an offset, a
//     string with half a surrogate pair.
//   - An object restored has its members in the order of the schema, those of a map by their names, and strings in the
//     spelling of encoding/json. Keys, numbers as they are spelled, duplicates of a key in their order, and null are
//     those of the object. Bytes that are no UTF-8 become U+FFFD, as readers of JSON make of them.
//   - int-or-string is a string: few readers of Avro know a union of two types. A text of digits is the number, and a
//     string of digits is in the rest.
//   - All integers are long. A CRD that says int32 today says nothing tomorrow, and only one way is compatible.
//   - A time is timestamp-micros, since its text can be made of it again; a quantity is a string, since it cannot.
//   - A recursive type is JSON text where it comes again (package openapi): few readers know recursive records.
//   - Bounded, whatever a CRD says: fields by number, by the length of their names, and in depth. What is left out is
//     in the rest. An object that would grow beyond a multiple of its JSON, as empty elements of wide records do, is
//     all in the rest.
//   - The encoder steps over the object's bytes (package scan) and makes no values of them. The library for Avro reads
//     what it wrote, for people who look at a log: nothing there depends on the speed.
package typed
