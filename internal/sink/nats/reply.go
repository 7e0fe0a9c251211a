package nats

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// generation counts the connections to servers.
func (c *connection) generation() uint64 { return c.nc.Stats().Reconnects }

// ask returns the next reply's number, and its subject.
func (c *connection) ask() (uint64, string) {
	c.number++
	text := append(make([]byte, 0, 64), c.inbox...)
	return c.number, string(strconv.AppendUint(text, c.number, 10))
}

// batch returns the prefix of the replies to a new batch. Their next token is the batch's id, which is unique among all
// clients.
func (c *connection) batch() string {
	c.number++
	return c.inbox + c.unique() + "-" + strconv.FormatUint(c.number, 10) + "."
}

// unique is the part of the inbox that no other client has.
func (c *connection) unique() string {
	name := strings.TrimSuffix(c.inbox, ".")
	return name[strings.LastIndexByte(name, '.')+1:]
}

// next waits for a reply. It fails if the connection is not that of the generation any more: then replies are lost.
func (c *connection) next(ctx context.Context, generation uint64, within time.Duration) (*natsgo.Msg, error) {
	select { // the quick way while replies stream in
	case m := <-c.replies:
		return m, nil
	default:
	}
	c.timer.Reset(within)
	defer c.timer.Stop()
	for {
		select {
		case m := <-c.replies:
			return m, nil
		case <-c.changed:
			if !c.nc.IsConnected() || c.generation() != generation {
				return nil, c.lost()
			}
		case <-c.life.Done():
			return nil, c.dead()
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.timer.C:
			return nil, errSilent
		}
	}
}

// request asks the JetStream API. The library's own requests do not notice that their connection is gone.
func (c *connection) request(ctx context.Context, subject string, body []byte, answer any) error {
	generation := c.generation()
	number, reply := c.ask()
	if err := c.nc.PublishRequest(c.api+subject, reply, body); err != nil {
		return err
	}
	for {
		m, err := c.next(ctx, generation, c.reply)
		if err != nil {
			return err
		}
		if got, ok := c.numberOf(m); ok && got == number {
			return parseAnswer(m, answer)
		}
	}
}

// wish is a request that the user may not be allowed to make: then it fails, and the connection does not.
func (c *connection) wish(ctx context.Context, subject string, body []byte, answer any) error {
	wishing, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c.wished.Store(&wished{subject: c.api + subject, deny: cancel})
	err := c.request(wishing, subject, body, answer)
	if cause := context.Cause(wishing); cause != nil {
		return cause
	}
	return err
}

// wished is the last wish. It stays, since word of its denial may come late.
type wished struct {
	subject string
	deny    context.CancelCauseFunc
}

// denied takes the word that something is not permitted, and says whether it was only wished for.
func (c *connection) denied(err error) bool {
	last := c.wished.Load()
	if last == nil || !strings.Contains(err.Error(), strconv.Quote(last.subject)) {
		return false
	}
	last.deny(&deniedError{permission(err)})
	return true
}

// parseAnswer returns the error that the answer holds, if it does.
func parseAnswer(m *natsgo.Msg, answer any) error {
	if noResponders(m) {
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

func noResponders(m *natsgo.Msg) bool { return len(m.Data) == 0 && m.Header.Get("Status") == "503" }

func (c *connection) numberOf(m *natsgo.Msg) (uint64, bool) {
	number, err := strconv.ParseUint(strings.TrimPrefix(m.Subject, c.inbox), 10, 64)
	return number, err == nil
}
