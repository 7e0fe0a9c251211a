package control

import (
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"strings"
)

// Token is what a question shows beside coming from this host: that who asks may read the exporter's state directory.
// Neither a web page nor a proxy in front of the port has it. Each start of the exporter has one of its own.
type Token struct{ text string }

// NewToken makes a token of 130 random bits.
func NewToken() Token { return Token{rand.Text()} }

// withoutToken says what to do.
const withoutToken = "this is answered to the exporter's own user alone: run the command with --state-dir on the exporter's host or in its pod, " +
	"or give it with --server the token, which is the third word of the file address in the state directory, in the environment as KUBECDC_TOKEN"

// scheme is of the header Authorization (RFC 6750).
const scheme = "Bearer "

func (t Token) show(r *http.Request) {
	if t.text != "" {
		r.Header.Set("Authorization", scheme+t.text)
	}
}

// shown says whether the request has the token.
func (t Token) shown(r *http.Request) bool {
	text, found := strings.CutPrefix(r.Header.Get("Authorization"), scheme)
	return found && t.text != "" && subtle.ConstantTimeCompare([]byte(text), []byte(t.text)) == 1
}
