// Package schema holds the JSON Schemas (draft 2020-12) of what the exporter writes and of what /statusz says, for
// those who read it. Operations and reasons come from package change; the files in the directory schema of the
// repository are made of it.
package schema
