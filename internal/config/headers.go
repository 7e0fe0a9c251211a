package config

import (
	"maps"
	"slices"
	"strings"
)

// ourHeaders are what names of the exporter's own headers, and of the servers', begin with.
func ourHeaders() []string { return []string{"kubecdc-", "ce_", "ce-", "nats-", "kv-", "content-type"} }

// checkHeaders checks templates of headers by their names.
func checkHeaders(k *checker, path string, headers map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		at := under(path, name)
		if !consistsOf(name, lower+upper+digits+"-_.") {
			k.problem(at, "%q cannot be a header; want letters, digits and any of -_.", shorten(name))
		}
		if slices.ContainsFunc(ourHeaders(), func(ours string) bool { return strings.HasPrefix(strings.ToLower(name), ours) }) {
			k.problem(at, "the exporter or the server has headers of such names; do not begin with any of %s", strings.Join(ourHeaders(), ", "))
		}
		literal, err := withoutPlaceholders(headers[name])
		if err != nil {
			k.problem(at, "%v", err)
		} else if strings.ContainsFunc(literal, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			k.problem(at, "control characters cannot be part of a header; leave them out")
		}
	}
}
