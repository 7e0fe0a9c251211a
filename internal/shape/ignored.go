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
	texts  [2][]byte
}

// NewIgnored parses the paths. What changes with every update is always among them.
func NewIgnored(paths []string) (*Ignored, error) {
	for _, path := range paths {
		if _, err := transform.Steps(path); err != nil {
			return nil, err
		}
	}
	always := []string{".metadata.resourceVersion", ".metadata.managedFields"}
	made, err := transform.New(transform.Rules{Drop: append(always, paths...)}, []byte("nothing is hashed"))
	if err != nil {
		return nil, err
	}
	return &Ignored{worker: made.Worker()}, nil
}

// Hide says whether the record's object differs from that before in ignored parts alone. What cannot be compared
// differs.
func (i *Ignored) Hide(rec *change.Record) bool {
	for at, object := range [][]byte{rec.Before, rec.Object} {
		i.proof.Prove(object, "")
		left, err := i.worker.Apply(i.texts[at][:0], object, &i.proof)
		if err != nil {
			return false
		}
		i.texts[at] = left
	}
	defer i.forget()
	return bytes.Equal(i.texts[0], i.texts[1])
}

// forget lets go of the objects, and of memory that few of them need.
func (i *Ignored) forget() {
	const most = 1 << 20 // bytes
	i.proof.Forget()
	if cap(i.texts[0])+cap(i.texts[1]) > most {
		i.texts = [2][]byte{}
	}
}
