package transform

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"

	"github.com/kubecdc/kubecdc/internal/scan"
	"github.com/kubecdc/kubecdc/internal/slab"
)

// Worker applies the rules to one object after the other, with the same memory. It is for one goroutine at a time.
type Worker struct {
	rewriter rewriter
	slab     slab.Slab
}

// Apply appends the owner's object as the rules leave it to dst. It returns an error, and nothing, for what is no JSON
// object.
func (t *Transform) Apply(dst, object []byte, owner Owner) ([]byte, error) {
	var proof scan.Proof
	proof.Prove(object, t.Watched())
	left, err := t.Worker().Apply(object, &proof, owner)
	if err != nil {
		return nil, err
	}
	return append(dst, left...), nil
}

// Worker makes one more.
func (t *Transform) Worker() *Worker {
	return &Worker{rewriter: rewriter{Transform: t, field: field{mac: hmac.New(sha256.New, t.key), bound: t.binds}}}
}

// Apply is that of the Transform, with a proof of the object that is made already. It returns the object itself where
// all of it stays, and otherwise memory of its own.
func (w *Worker) Apply(object []byte, proof *scan.Proof, owner Owner) ([]byte, error) {
	r := &w.rewriter
	defer r.forget()
	r.start(owner)
	r.out = w.slab.Room(len(object))
	if !r.run(proof, object) {
		return nil, errors.New("transform an object: it is not valid JSON")
	}
	if r.copied == 0 {
		return object, nil
	}
	return w.slab.Keep(r.out), nil
}
