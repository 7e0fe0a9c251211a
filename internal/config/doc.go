// Package config reads what a user wants from a YAML file and from flags. It is strict: a key that nobody reads, a
// value of the wrong type and a template that cannot be filled in are problems, and all of them are reported at once,
// each with its path and line in the file. It knows no broker and no API server: whether a file exists, a host answers
// or a resource is served is for others to find out.
//
// A program calls Load, then Overlay with its flags, then Validate:
//
//	cfg, err := config.Load(path, os.LookupEnv)
//	...
//	err = config.Overlay(cfg, flags)
//	...
//	err = cfg.Validate()
//
// Each of the three errors is a *Problems. Without a file, start from new(Config).
//
// A field with the tag key is the one declaration of a key: its type, default, allowed values and bounds. One walk over
// the fields reads, fills in, checks and shows them. The reference and the chart's schema are made of the same tags, by
// test/reference. What each key means is in its sentences.yaml: a sentence has no good place in a tag.
package config
