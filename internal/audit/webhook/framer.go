package webhook

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/kubecdc/kubecdc/internal/scan"
)

// The bounds of what is read, in bytes.
const (
	maxHead  = 4 << 10  // what comes before the events
	maxEvent = 24 << 20 // twice the largest object that an API server stores
	maxSmall = 1 << 20  // an event that others of its size may be in memory beside
	chunk    = 32 << 10
)

// errForm is a body that is no list of audit events.
var errForm = errors.New("want an EventList of audit.k8s.io/v1: have the webhook's version be audit.k8s.io/v1")

// framer finds the events in the body of a request, one after the other.
type framer struct {
	from *bufio.Reader
	// large is taken for an event above maxSmall, and given back with release.
	large func(ctx context.Context) (release func(), err error)
	event []byte
}

func newFramer(body io.Reader, large func(context.Context) (func(), error)) *framer {
	return &framer{from: bufio.NewReaderSize(body, chunk), large: large}
}

// each gives the events to take, until that fails. An event that is too large is nil. They are valid until take
// returns.
func (f *framer) each(ctx context.Context, take func(event []byte) error) error {
	if err := f.head(); err != nil {
		return err
	}
	for first := true; ; first = false {
		c, err := f.next()
		switch {
		case err != nil:
			return err
		case c == ']':
			return f.end()
		case c == ',' && !first:
			if c, err = f.next(); err != nil {
				return err
			}
		case !first:
			return errForm
		}
		if c != '{' {
			return errForm
		}
		if err := f.one(ctx, take); err != nil {
			return err
		}
	}
}

// head reads up to the events. Whoever writes JSON in Go writes the kind before them.
func (f *framer) head() error {
	var head []byte
	for len(head) < maxHead {
		c, err := f.from.ReadByte()
		if err != nil {
			return cut(err)
		}
		if head = append(head, c); c != '[' {
			continue
		}
		var list struct {
			Kind       string             `json:"kind"`
			APIVersion string             `json:"apiVersion"`
			Items      *[]json.RawMessage `json:"items"`
		}
		if json.Unmarshal(append(head, "]}"...), &list) != nil || list.Items == nil || list.Kind != "EventList" || list.APIVersion != "audit.k8s.io/v1" {
			return errForm
		}
		return nil
	}
	return errForm
}

// end reads what is after the events.
func (f *framer) end() error {
	if c, err := f.next(); err != nil || c != '}' {
		return errors.Join(errForm, err)
	}
	return nil
}

// next is the next byte that is no white space.
func (f *framer) next() (byte, error) {
	for {
		c, err := f.from.ReadByte()
		if err != nil {
			return 0, cut(err)
		}
		if c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return c, nil
		}
	}
}

// one reads an event after its first bracket, and gives it to take.
func (f *framer) one(ctx context.Context, take func([]byte) error) error {
	var inside scan.Balance
	inside.Enter()
	f.event = append(f.event[:0], '{')
	tooLarge := false
	for {
		if _, err := f.from.Peek(1); err != nil {
			return cut(err)
		}
		part, _ := f.from.Peek(f.from.Buffered())
		n := inside.Skip(part)
		ends := n >= 0
		if !ends {
			n = len(part)
		}
		if tooLarge = tooLarge || len(f.event)+n > maxEvent; !tooLarge {
			if len(f.event) <= maxSmall && len(f.event)+n > maxSmall {
				release, err := f.large(ctx)
				if err != nil {
					return err
				}
				defer release()
				defer func() { f.event = nil }()
			}
			f.event = append(f.event, part[:n]...)
		}
		if _, err := f.from.Discard(n); err != nil {
			return cut(err)
		}
		if ends {
			break
		}
	}
	if tooLarge {
		return take(nil)
	}
	return take(f.event)
}

// cut is the error of a body that ends too early.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("the body ends within the events: %w", io.ErrUnexpectedEOF)
	}
	return err
}
