// Package schemas writes the schemas of resources, as Avro or as JSON Schema: those of the objects after the rules, or
// of the values that a sink with a registry gets.
package schemas
