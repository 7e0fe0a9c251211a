package kafka

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
)

// SetProducerQuota makes the brokers throttle what the clients of an id write to so many bytes a second each; 0 takes
// the quota away. Brokers that have throttled a client already leave its connections alone until the time is over that
// they have told it.
func (c *Cluster) SetProducerQuota(tb testing.TB, clientID string, bytes int) {
	tb.Helper()
	quota := kadm.AlterClientQuotaEntry{
		Entity: kadm.ClientQuotaEntity{{Type: "client-id", Name: &clientID}},
		Ops:    []kadm.AlterClientQuotaOp{{Key: "producer_byte_rate", Value: float64(bytes), Remove: bytes == 0}},
	}
	c.await(tb, "set the quota of client "+clientID, func(ctx context.Context) error {
		altered, err := c.admin.AlterClientQuotas(ctx, []kadm.AlterClientQuotaEntry{quota})
		for _, q := range altered {
			err = cmp.Or(err, permanentUnlessRetriable(q.Err, q.ErrMessage))
		}
		return err
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
