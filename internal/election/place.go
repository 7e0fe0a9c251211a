package election

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Place is which Lease it is.
type Place struct{ Namespace, Name string }

// String is "namespace/name".
func (p Place) String() string { return p.Namespace + "/" + p.Name }

// ParsePlace is the inverse of String.
func ParsePlace(text string) Place {
	namespace, name, _ := strings.Cut(text, "/")
	return Place{namespace, name}
}

// maxLabel is how long a part of our names for Leases may be.
const maxLabel = 63

// NameFor is the name of the Lease of a cluster's exporters. A cluster's name that cannot be a part of it as it is gets
// a hash after it, so that no two have the same one.
func NameFor(cluster string) string {
	name := "kubecdc-" + strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(cluster)), "-")
	if name == "kubecdc-"+cluster && len(name) <= maxLabel {
		return name
	}
	hash := sha256.Sum256([]byte(cluster))
	const digits = 8
	short := strings.TrimRight(name[:min(len(name), maxLabel-digits-1)], "-")
	return fmt.Sprintf("%s-%s", short, hex.EncodeToString(hash[:digits/2]))
}
