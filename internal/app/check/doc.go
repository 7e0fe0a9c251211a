// Package check looks at everything that a run would use, changes nothing, and reports every problem at once.
//
// Decisions:
//
//   - What the running exporter has open is no problem: check asks it, and does not call its own address in use.
//   - A path that no object has is a problem only where the streams are known. Below a wildcard it is a note, since
//     more resources may come.
package check
