package checkpoint

import (
	"github.com/kubecdc/kubecdc/internal/sink"
)

// maxCarried is the longest text of carried ids that is believed, in bytes.
const maxCarried = 1 << 30

// Carried is what a mark carries that is ahead of the saved state.
type Carried struct {
	IDs  []string  // of records that lie before the mark in the sink's log, and are not part of the saved state
	From sink.Mark // an earlier mark, before which everything is saved
}

// Carried is what the sink's saved mark carries.
func (s *Store) Carried(sinkName string) (Carried, error) {
	mark, _, err := s.Mark(sinkName)
	if err != nil {
		return Carried{}, err
	}
	value, found, err := s.get(carriedKey(sinkName))
	if err != nil || !found {
		return Carried{}, err
	}
	of, c, err := s.codec.carried(value)
	if err != nil {
		return Carried{}, s.badValue("what the mark of sink "+sinkName+" carries", err)
	}
	if of != mark {
		return Carried{}, nil // that one was replaced
	}
	return c, nil
}

// carried writes what the marks of the batch carry. What a mark carried that is replaced counts no more in any case.
func (w *writer) carried(b *Batch) error {
	for name, c := range b.Carried {
		if len(c.IDs) == 0 {
			if err := w.batch.Delete(carriedKey(name), nil); err != nil {
				return err
			}
			continue
		}
		value, err := w.store.codec.appendTexts(appendText(appendText(nil, string(b.Marks[name])), string(c.From)), c.IDs)
		if err == nil {
			err = w.batch.Set(carriedKey(name), value, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// carried reads what a mark carries: the mark, the earlier one, the ids.
func (c *codec) carried(value []byte) (of sink.Mark, found Carried, err error) {
	mark, rest, err := cutText(value)
	if err != nil {
		return "", found, err
	}
	from, frame, err := cutText(rest)
	if err != nil {
		return "", found, err
	}
	found.From = sink.Mark(from)
	found.IDs, err = c.texts(frame)
	return sink.Mark(mark), found, err
}

// appendTexts appends a zstd frame of the texts, each with its length in front.
func (c *codec) appendTexts(dst []byte, texts []string) ([]byte, error) {
	if err := c.start(); err != nil {
		return nil, err
	}
	var raw []byte
	for _, text := range texts {
		raw = appendText(raw, text)
	}
	return c.writer.EncodeAll(raw, dst), nil
}

// texts is the inverse of appendTexts.
func (c *codec) texts(frame []byte) ([]string, error) {
	if err := c.start(); err != nil {
		return nil, err
	}
	raw, err := c.reader.DecodeAll(frame, nil)
	if err != nil || len(raw) > maxCarried {
		return nil, errValue
	}
	var texts []string
	for len(raw) > 0 {
		var text string
		if text, raw, err = cutText(raw); err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, nil
}
