package kafka

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// SetProducerQuota makes the brokers throttle what the clients of an id write to so many bytes a second each; 0 takes
// the quota away. Brokers that have throttled a client already leave its connections alone until the time is over that
// they have told it.
func (c *Cluster) SetProducerQuota(tb testing.TB, clientID string, bytes int) {
	tb.Helper()
	request := kmsg.NewPtrAlterClientQuotasRequest()
	entry, of := kmsg.NewAlterClientQuotasRequestEntry(), kmsg.NewAlterClientQuotasRequestEntryEntity()
	of.Type, of.Name = "client-id", &clientID
	op := kmsg.NewAlterClientQuotasRequestEntryOp()
	op.Key, op.Value, op.Remove = "producer_byte_rate", float64(bytes), bytes == 0
	entry.Entity, entry.Ops = append(entry.Entity, of), append(entry.Ops, op)
	request.Entries = append(request.Entries, entry)
	c.await(tb, "set the quota of client "+clientID, func(ctx context.Context) error {
		response, err := request.RequestWith(ctx, c.client)
		if err != nil {
			return err
		}
		return permanentUnlessRetriable(kerr.ErrorForCode(response.Entries[0].ErrorCode), response.Entries[0].ErrorMessage)
	})
}

// AwaitDeadClients waits until the brokers have read all that clients have left in their sockets which are gone: a
// broker that throttles reads it late. Where the machine does not tell (it is no Linux), it returns at once.
func (c *Cluster) AwaitDeadClients(tb testing.TB) {
	tb.Helper()
	ours := map[string]bool{}
	for _, broker := range c.Brokers() {
		_, port, err := net.SplitHostPort(broker)
		if err != nil {
			tb.Fatal(err)
		}
		ours[port] = true
	}
	c.await(tb, "wait for the connections of clients that are gone", func(context.Context) error {
		for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
			left, err := halfClosed(table, ours)
			if err != nil || left > 0 {
				return errors.Join(err, fmt.Errorf("%d connections are closed by their clients alone", left))
			}
		}
		return nil
	})
}

// halfClosed counts the connections at the local ports of which the other side is closed: state 8, CLOSE_WAIT (proc(5),
// tcp_states.h).
func halfClosed(table string, ports map[string]bool) (n int, err error) {
	file, err := os.Open(table)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Fields(lines.Text()) // sl local_address rem_address st ...
		if len(fields) < 4 || fields[3] != "08" {
			continue
		}
		_, local, _ := strings.Cut(fields[1], ":")
		if port, err := strconv.ParseUint(local, 16, 16); err == nil && ports[strconv.FormatUint(port, 10)] {
			n++
		}
	}
	return n, lines.Err()
}
