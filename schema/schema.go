// Package schema has the JSON Schemas (draft 2020-12) of what the exporter writes and of what /statusz says, for those
// who read it. Each file NAME.json has the $id "urn:kubecdc:schema:NAME": a name and no address, so that nobody asks a
// network for it. None refers to another. They allow further fields: readers that check what they read go on when a
// later version of the exporter adds one.
package schema

import "embed"

// Files are NAME.json.
//
//go:embed *.json
var Files embed.FS
