package frame

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"

	"github.com/kubecdc/kubecdc/internal/scan"
)

// ListMeta is what a page of a list says of the list.
type ListMeta struct {
	ResourceVersion string
	Continue        string // the token for the next page; "" on the last
	Remaining       int64  // items on the next pages; -1 where the server does not say
}

// ScanList reads one page of a list from r and calls fn for each item, in the order of the page. No more than one item
// is held in memory, and ListMeta may come after the items: only when ScanList returns no error were these all. An item
// that cannot be read has its Err set. A page that ends early is io.ErrUnexpectedEOF, and what is no list, even a valid
// answer of another kind, is a *SyntaxError: it must never look like an empty list. An error of fn ends the scan and is
// returned as it is.
func ScanList(r io.Reader, opts Options, fn func(Object) error) (ListMeta, error) {
	l := &list{
		window:  window{src: r, max: cmp.Or(opts.maxBytes, defaultMaxBytes)},
		scanner: scanner{opts: opts},
		fn:      fn,
	}
	l.kind = frontMember("kind", opts.Kind)
	l.apiVersion = frontMember("apiVersion", opts.APIVersion)
	if err := l.scan(); err != nil {
		return ListMeta{}, err
	}
	return l.meta, nil
}

// list is one page of a list on its way, which is read piece by piece, with whatever space is between the pieces. Its
// methods step over what they name.
type list struct {
	window
	scanner          scanner
	fn               func(Object) error
	kind, apiVersion []byte // members for the front of an item that lacks them
	lacking          []byte // those of the last item
	items            bool   // the items were there
	length           int    // of the last item
	meta             ListMeta
	metaErr          error
}

func (l *list) scan() error {
	if err := l.each('{', '}', l.member); err != nil {
		return err
	}
	if !l.items {
		return l.wrong("the list has no items")
	}
	if l.metaErr != nil {
		return l.metaErr
	}
	return l.end()
}

func (l *list) member() error {
	key, err := l.key()
	if err != nil {
		return err
	}
	switch key {
	case "items":
		return l.allItems()
	case "metadata":
		return l.take(func(value []byte) error {
			l.metaErr = nil // the last metadata counts
			if err := l.metadata(value); err != nil {
				l.metaErr = &SyntaxError{err}
			}
			return nil
		})
	}
	return l.take(func([]byte) error { return nil })
}

func (l *list) key() (key string, err error) {
	err = l.take(func(value []byte) error {
		if value[0] != '"' {
			return errors.New("want a key")
		}
		return json.Unmarshal(value, &key)
	})
	if err != nil {
		return "", err
	}
	return key, l.expect(':')
}

// take hands the next value to fn and steps over it.
func (l *list) take(fn func(value []byte) error) error {
	value, err := l.value()
	if err != nil {
		return err
	}
	if err := fn(value); err != nil {
		return &SyntaxError{err}
	}
	l.discard(len(value))
	return nil
}

// allItems hands on the items. A second array of items would have to undo the first.
func (l *list) allItems() error {
	if l.items {
		return l.wrong("the list has its items twice")
	}
	l.items = true
	c, err := l.peek()
	if err != nil {
		return err
	}
	if c == '[' {
		return l.each('[', ']', l.item)
	}
	return l.take(func(value []byte) error {
		if !isNull(value) {
			return errors.New("the items are not an array")
		}
		return nil
	})
}

func (l *list) item() error {
	item, err := l.nextItem()
	if err != nil {
		return err
	}
	o := l.object(item)
	l.length = len(item)
	l.discard(len(item))
	return l.fn(o)
}

// nextItem returns the item that comes next, held whole and marked. To find an item's end before it is marked is to
// look at each byte twice, so it is marked first, when as much is held as the last item had: the items of a list are
// alike. What ends the stream meanwhile is for those to tell who need more.
func (l *list) nextItem() (item []byte, err error) {
	if _, err := l.peek(); err != nil {
		return nil, err
	}
	for len(l.held()) < l.length && l.fill() == nil {
	}
	if l.scanner.mark(&cursor{data: l.held()}, 0) {
		end := l.scanner.marks.self.end
		return l.held()[:end], l.check(end)
	}
	if item, err = l.value(); err == nil {
		l.scanner.mark(&cursor{data: item}, 0)
	}
	return item, err
}

// object makes an object of the marked item. One on several lines is brought onto one, since it goes on as a line.
func (l *list) object(item []byte) (o Object) {
	s := &l.scanner
	var err error
	if s.marks.self.found() && bytes.IndexByte(item, '\n') >= 0 {
		var line bytes.Buffer
		if err = json.Compact(&line, item); err == nil {
			item = line.Bytes()
			s.mark(&cursor{data: item}, 0)
		}
	}
	switch {
	case err == nil && !s.marks.self.found():
		err = broken(item, errNoObject)
	case err == nil:
		o, err = s.object(item, l.front(item))
	}
	if err != nil {
		return s.unreadable(item, err)
	}
	return o
}

// front is what the marked item lacks of kind and apiVersion.
func (l *list) front(item []byte) []byte {
	m := &l.scanner.marks
	l.lacking = l.lacking[:0]
	if !m.kind.found() {
		l.lacking = append(l.lacking, l.kind...)
	}
	if !m.apiVersion.found() {
		l.lacking = append(l.lacking, l.apiVersion...)
	}
	if len(bytes.TrimSpace(item[1:len(item)-1])) == 0 {
		return bytes.TrimSuffix(l.lacking, []byte(",")) // nothing follows
	}
	return l.lacking
}

func frontMember(key, value string) []byte {
	if value == "" {
		return nil
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil // a string always has a JSON form
	}
	return append(append([]byte(`"`+key+`":`), text...), ',')
}

var errNoObject = errors.New("no object where one belongs")

// metadata reads the metadata of the list.
func (l *list) metadata(value []byte) error {
	if l.meta = (ListMeta{}); isNull(value) {
		return nil
	}
	if value[0] != '{' {
		return errNoObject
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(value, &all); err != nil {
		return err
	}
	l.meta.Remaining = -1
	for key, into := range map[string]any{
		"resourceVersion": &l.meta.ResourceVersion, "continue": &l.meta.Continue,
		"remainingItemCount": &l.meta.Remaining,
	} {
		if raw, found := all[key]; found {
			if err := json.Unmarshal(raw, into); err != nil {
				return err
			}
		}
	}
	if l.meta.Continue == "" {
		l.meta.Remaining = 0
	}
	return nil
}

// wrong is the error for what comes next.
func (l *list) wrong(what string) error {
	return &SyntaxError{errors.New(what)}
}

// end returns nil if there is nothing but space up to the end of the stream.
func (l *list) end() error {
	for {
		if l.skipSpace(); len(l.held()) > 0 {
			return l.wrong("there is more after the end")
		}
		if err := l.fill(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func (l *list) skipSpace() { l.discard(scan.Space(l.held(), 0)) }

// peek returns the byte that the next piece begins with, which is held.
func (l *list) peek() (byte, error) {
	for {
		if l.skipSpace(); len(l.held()) > 0 {
			return l.held()[0], nil
		}
		if err := l.more(); err != nil {
			return 0, err
		}
	}
}

// expect steps over one byte.
func (l *list) expect(want byte) error {
	c, err := l.peek()
	if err != nil {
		return err
	}
	if c != want {
		return l.wrong("want " + string(want))
	}
	l.discard(1)
	return nil
}

// each calls element, which steps over one, for all that is between the brackets and commas.
func (l *list) each(opening, closing byte, element func() error) error {
	if err := l.expect(opening); err != nil {
		return err
	}
	for first := true; ; first = false {
		c, err := l.peek()
		if err != nil {
			return err
		}
		if c == closing {
			return l.expect(closing)
		}
		if !first {
			if err := l.expect(','); err != nil {
				return err
			}
		}
		if err := element(); err != nil {
			return err
		}
	}
}

// value returns the next value whole. It stays held, for discard.
func (l *list) value() ([]byte, error) {
	c, err := l.peek()
	if err != nil {
		return nil, err
	}
	if c == '{' || c == '[' {
		return l.nested()
	}
	return l.flat()
}

// nested looks at each byte once, however many pieces the value comes in.
func (l *list) nested() ([]byte, error) {
	var b scan.Balance
	b.Enter()
	for seen := 1; ; {
		held := l.held()
		if n := b.Skip(held[seen:]); n >= 0 {
			return held[:seen+n], l.check(seen + n)
		}
		seen = len(held)
		if err := l.more(); err != nil {
			return nil, err
		}
	}
}

// flat is for strings and scalars, which are short where a list has them. A scalar ends before a byte that cannot be in
// it, so that byte must be there.
func (l *list) flat() ([]byte, error) {
	for {
		c := cursor{data: l.held()}
		quoted := c.at('"')
		c.skip()
		switch {
		case c.unsure && !quoted:
			return nil, l.wrong("want a value")
		case !c.unsure && (quoted || c.pos < len(c.data)):
			return c.data[:c.pos], l.check(c.pos)
		}
		if err := l.more(); err != nil {
			return nil, err
		}
	}
}
