package conn

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Generation counts the connections to servers.
func (c *Conn) Generation() uint64 { return c.NC.Stats().Reconnects }

// Ask returns the next reply's number, and its subject.
func (c *Conn) Ask() (uint64, string) {
	c.Number++
	text := append(make([]byte, 0, 64), c.Inbox...)
	return c.Number, string(strconv.AppendUint(text, c.Number, 10))
}

// Batch returns the prefix of the replies to a new batch. Their next token is the batch's id, which is unique among
// all clients.
func (c *Conn) Batch() string {
	c.Number++
	name := strings.TrimSuffix(c.Inbox, ".") // of which no other client has the end
	return c.Inbox + name[strings.LastIndexByte(name, '.')+1:] + "-" + strconv.FormatUint(c.Number, 10) + "."
}

// Next waits for a reply. It fails if the connection is not that of the generation any more: then replies are lost.
func (c *Conn) Next(ctx context.Context, generation uint64, within time.Duration) (*natsgo.Msg, error) {
	select { // the quick way while replies stream in
	case m := <-c.Replies:
		return m, nil
	default:
	}
	c.timer.Reset(within)
	defer c.timer.Stop()
	for {
		select {
		case m := <-c.Replies:
			return m, nil
		case <-c.Changed:
			if !c.NC.IsConnected() || c.Generation() != generation {
				return nil, c.lost()
			}
		case <-c.life.Done():
			return nil, c.Over()
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.timer.C:
			return nil, ErrSilent
		}
	}
}

// Request asks the JetStream API, subject without its prefix. The library's own requests do not notice that their
// connection is gone.
func (c *Conn) Request(ctx context.Context, subject string, body []byte, answer any) error {
	generation := c.Generation()
	number, reply := c.Ask()
	if err := c.PublishRequest(c.API+subject, reply, body); err != nil {
		return err
	}
	for {
		m, err := c.Next(ctx, generation, c.Reply)
		if err != nil {
			return err
		}
		if got, ok := c.NumberOf(m); ok && got == number {
			return Parse(m, answer)
		}
	}
}

// PublishRequest sends a request. Where nothing more can come of the connection, its error says why: the library's
// speaks of its buffer.
func (c *Conn) PublishRequest(subject, reply string, body []byte) error {
	if err := c.NC.PublishRequest(subject, reply, body); err != nil {
		return cmp.Or(c.Over(), err)
	}
	return nil
}

// Parse reads the answer. It returns the error that the answer holds, if it does.
func Parse(m *natsgo.Msg, answer any) error {
	if NoResponders(m) {
		return natsgo.ErrNoResponders
	}
	var failed struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &failed); err != nil {
		return err
	}
	if failed.Error != nil {
		return failed.Error
	}
	return json.Unmarshal(m.Data, answer)
}

// NoResponders says whether nobody has taken the request.
func NoResponders(m *natsgo.Msg) bool { return len(m.Data) == 0 && m.Header.Get("Status") == "503" }

// NumberOf is which Ask the reply is for, false where it is for none.
func (c *Conn) NumberOf(m *natsgo.Msg) (uint64, bool) {
	number, err := strconv.ParseUint(strings.TrimPrefix(m.Subject, c.Inbox), 10, 64)
	return number, err == nil
}
