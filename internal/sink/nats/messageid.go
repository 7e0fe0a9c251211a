package nats

import (
	"crypto/sha256"
	"encoding/base64"
)

// messageID is what the server knows a message of a shared stream by. JetStream takes a message of the same id for a
// repetition, on whatever subject and by whomever.
func messageID(author, subject, id string) string { return shortHash(author, subject) + "/" + id }

func shortHash(parts ...string) string {
	hash := sha256.New()
	for _, part := range parts {
		hash.Write([]byte(part))
		hash.Write([]byte{0})
	}
	return base64.RawURLEncoding.EncodeToString(hash.Sum(nil)[:hashedBytes])
}

// hashedBytes of a hash tell writers and subjects apart; in base64 they are a third more.
const hashedBytes = 12
