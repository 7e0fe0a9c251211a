package control

import "strings"

// resourceOf is the resource of a stream: that of "shop/secrets" is "secrets".
func resourceOf(stream string) string { return stream[strings.LastIndex(stream, "/")+1:] }
