package shape

import (
	"bytes"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/scan"
	"github.com/kubecdc/kubecdc/internal/transform"
)

// Ignored are the parts of an object whose changes alone are not worth telling. It is for one goroutine at a time.
type Ignored struct {
	worker *transform.Worker
	proof  scan.Proof
}

// NewIgnored parses the paths. What changes with every update is always among them.
func NewIgnored(paths []string) (*Ignored, error) {
	for _, path := range paths {
		if _, err := transform.Steps(path); err != nil {
			return nil, err
		}
	}
	always := []string{".metadata.resourceVersion", ".metadata.managedFields"}
	made, err := transform.New(transform.Rules{Drop: append(always, paths...)}, transform.Key{Secret: []byte("nothing is hashed")})
	if err != nil {
		return nil, err
	}
	return &Ignored{worker: made.Pruned().Worker()}, nil
}

// Hide says whether the record's object differs from that before in ignored parts alone. What cannot be compared
// differs.
func (i *Ignored) Hide(rec *change.Record) bool {
	defer i.proof.Forget()
	var left [2][]byte
	for at, object := range [2][]byte{rec.Before, rec.Object} {
		i.proof.Prove(object, "")
		var err error
		if left[at], err = i.worker.Apply(object, &i.proof, transform.Owner{}); err != nil {
			return false
		}
	}
	return bytes.Equal(left[0], left[1])
}
