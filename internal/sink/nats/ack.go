package nats

import (
	"bytes"
	"strconv"

	natsgo "github.com/nats-io/nats.go"

	"github.com/kubecdc/kubecdc/internal/sink/nats/conn"
)

// parseAck returns the sequence of {"stream":"K8S","seq":7}. It reads what has no error in it by hand: a JSON decoder
// would take as long as all the rest of a message's way through the client.
func parseAck(m *natsgo.Msg) (uint64, error) {
	if _, rest, found := bytes.Cut(m.Data, []byte(`"seq":`)); found && !bytes.Contains(m.Data, []byte(`"error"`)) {
		digits := bytes.TrimLeft(rest, " ")
		end := bytes.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' })
		if seq, err := strconv.ParseUint(string(digits[:max(end, 0)]), 10, 64); err == nil {
			return seq, nil
		}
	}
	var ack struct {
		Seq uint64 `json:"seq"`
	}
	err := conn.Parse(m, &ack)
	return ack.Seq, err
}
