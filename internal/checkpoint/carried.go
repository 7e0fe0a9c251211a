package checkpoint

import "github.com/kubecdc/kubecdc/internal/sink"

// Carried is what a mark carries that is ahead of the saved state.
type Carried struct {
	IDs  []string  // of records that lie before the mark in the sink's log, and are not part of the saved state
	From sink.Mark // an earlier mark, before which everything is saved
}

// Carried is what the sink's saved mark carries.
func (s sinks) Carried(sinkName string) (Carried, error) {
	mark, _, err := s.Mark(sinkName)
	if err != nil {
		return Carried{}, err
	}
	value, found, err := s.get(carriedKey(sinkName))
	if err != nil || !found {
		return Carried{}, err
	}
	of, c, err := s.parseCarried(value)
	if err != nil {
		return Carried{}, s.badValue("what the mark of sink "+sinkName+" carries", err)
	}
	if of != mark {
		return Carried{}, nil // that one was replaced
	}
	return c, nil
}

// carry writes what marks carry. What a mark carried that is replaced counts no more in any case.
func (s sinks) carry(b *rows, marks map[string]sink.Mark, carried map[string]Carried) {
	for name, c := range carried {
		if len(c.IDs) == 0 {
			b.remove(carriedKey(name))
			continue
		}
		value, err := s.appendCarried(nil, marks[name], c)
		b.note(err)
		b.set(carriedKey(name), value)
	}
}

// appendCarried appends what the mark carries: the mark, the earlier one, and a frame of the ids.
func (s sinks) appendCarried(dst []byte, mark sink.Mark, c Carried) ([]byte, error) {
	var ids []byte
	for _, id := range c.IDs {
		ids = appendText(ids, id)
	}
	return s.zip(appendText(appendText(dst, string(mark)), string(c.From)), ids)
}

// parseCarried is the inverse of appendCarried.
func (s sinks) parseCarried(value []byte) (of sink.Mark, c Carried, err error) {
	mark, rest, err := cutText(value)
	if err != nil {
		return "", c, err
	}
	from, frame, err := cutText(rest)
	if err != nil {
		return "", c, err
	}
	ids, err := s.unzip(nil, frame)
	if err != nil {
		return "", c, errValue
	}
	for c.From = sink.Mark(from); len(ids) > 0; {
		var id string
		if id, ids, err = cutText(ids); err != nil {
			return "", c, err
		}
		c.IDs = append(c.IDs, id)
	}
	return sink.Mark(mark), c, nil
}
