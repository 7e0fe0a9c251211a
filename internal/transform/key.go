package transform

import (
	"crypto/hmac"
	"crypto/sha256"
	"slices"
)

// Key makes hashes.
type Key struct {
	Secret []byte // whoever has it can test guesses of what is behind a hash
	// Comparable hashes are of the value alone: equal ones stand for equal values, wherever they are. Others are of the
	// cluster, the object and the field, too: whoever may write one object learns nothing from its hashes of another.
	Comparable bool
	Cluster    string
}

// Form tells the keys apart that hashes of the rules are made with. Whoever reads it has the key.
func (k Key) Form(all ...Rules) []byte {
	if !slices.ContainsFunc(all, Rules.hashes) {
		return k.Secret
	}
	return k.bytes()
}

func (k Key) bytes() []byte {
	if k.Comparable {
		return k.Secret
	}
	mac := hmac.New(sha256.New, k.Secret)
	mac.Write([]byte("of a field in the cluster " + k.Cluster))
	return mac.Sum(nil)
}
