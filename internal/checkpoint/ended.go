package checkpoint

import (
	"slices"
)

// ended are the objects whose deletes were delivered at the newest version of a stream that is being compared. The
// inventory does not tell: it never had what the comparison had not come to, and a watch brings all deletes of that
// version again. Expired Events are deleted many at a time.
type ended struct {
	version string
	uids    []string
}

// Ended says whether the delete of the object with the uid at the version was delivered. It knows the newest version of
// a stream that is being compared.
func (i inventory) Ended(stream, version, uid string) (bool, error) {
	e, err := readEnded(i.database, stream)
	return err == nil && e.version == version && slices.Contains(e.uids, uid), err
}

func readEnded(d *database, stream string) (e ended, err error) {
	value, found, err := d.get(endedKey(stream))
	if err != nil || !found {
		return e, err
	}
	if e.version, value, err = cutText(value); err != nil {
		return e, d.badValue("the deletes of "+stream, err)
	}
	for len(value) > 0 {
		var uid string
		if uid, value, err = cutText(value); err != nil {
			return e, d.badValue("the deletes of "+stream, err)
		}
		e.uids = append(e.uids, uid)
	}
	return e, nil
}

func (e *ended) value() []byte {
	value := appendText(nil, e.version)
	for _, uid := range e.uids {
		value = appendText(value, uid)
	}
	return value
}
