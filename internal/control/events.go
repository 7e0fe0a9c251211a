package control

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
)

// maxEvent is the longest line of an event, in bytes: the status of many streams is one.
const maxEvent = 64 << 20

// Event is a server-sent event (HTML standard, 9.2).
type Event struct {
	Name string
	Data []byte // valid until the next event
}

// Events yields what the exporter tells at /events, until ctx ends or the exporter does; that is the last error.
func (c *Client) Events(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		response, err := c.send(ctx, http.MethodGet, "/events", nil)
		if err != nil {
			yield(Event{}, err)
			return
		}
		defer response.Body.Close()
		lines := bufio.NewScanner(response.Body)
		lines.Buffer(nil, maxEvent)
		var event Event
		for lines.Scan() {
			name, value, _ := bytes.Cut(lines.Bytes(), []byte(": "))
			switch string(name) {
			case "event":
				event.Name = string(value)
			case "data":
				event.Data = append(event.Data[:0], value...)
			case "":
				if !yield(event, nil) {
					return
				}
				event.Name = ""
			}
		}
		err = lines.Err()
		if err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("it ended the connection")
		}
		yield(Event{}, fmt.Errorf("follow the exporter at %s: %w", c.base, err))
	}
}
