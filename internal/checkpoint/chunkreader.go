package checkpoint

import (
	"encoding/binary"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// chunkReader is the inverse of chunkWriter. After an error everything that it reads is empty.
type chunkReader struct {
	shared
	rest []byte
	err  error
}

func (r *chunkReader) record() *change.Record {
	op, flags := r.byte(), r.number()
	rec := &change.Record{
		Op: change.Op(op), FinalStateUnknown: flags&finalStateUnknown != 0, Last: flags&isLast != 0, Beside: flags&isBeside != 0,
	}
	if at := r.number(); r.err == nil && at < uint64(len(r.Streams)) {
		rec.Stream = &r.Streams[at]
		if at < uint64(len(r.Forms)) {
			rec.Form = r.Forms[at]
		}
	} else {
		r.err = errValue
	}
	for _, text := range []*string{&rec.Key.Namespace, &rec.Key.Name, &rec.UID, &rec.ResourceVersion, &rec.Sink, &rec.Epoch} {
		*text = r.text()
	}
	if flags&hasReceived != 0 {
		rec.Received = r.time()
	}
	if flags&hasSnapshot != 0 {
		if at := r.number(); r.err == nil && at < uint64(len(r.Snapshots)) {
			rec.Snapshot = &r.Snapshots[at]
		} else {
			r.err = errValue
		}
	}
	if flags&hasObject != 0 {
		rec.Object = r.bytes()
	}
	if flags&hasBefore != 0 {
		rec.Before = r.bytes()
	}
	if flags&isWithheld != 0 {
		rec.Withheld = r.text()
	}
	if flags&hasActor != 0 {
		rec.Actor = r.bytes()
	}
	if flags&hasInvolved != 0 {
		rec.Involved = r.bytes()
	}
	return rec
}

func (r *chunkReader) byte() byte {
	if r.err != nil || len(r.rest) == 0 {
		r.err = errValue
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *chunkReader) number() uint64 {
	n, width := binary.Uvarint(r.rest)
	if width <= 0 {
		r.err = errValue
		return 0
	}
	r.rest = r.rest[width:]
	return n
}

func (r *chunkReader) time() time.Time {
	n, width := binary.Varint(r.rest)
	if width <= 0 {
		r.err = errValue
		return time.Time{}
	}
	r.rest = r.rest[width:]
	return time.Unix(0, n)
}

func (r *chunkReader) bytes() []byte {
	n := r.number()
	if r.err != nil || n > uint64(len(r.rest)) {
		r.err = errValue
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

func (r *chunkReader) text() string { return string(r.bytes()) }
