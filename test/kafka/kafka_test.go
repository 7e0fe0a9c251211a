package kafka

import (
	"errors"
	"net"
	"os"
	"testing"

	"go.uber.org/goleak"
)

var shared Shared

func TestMain(m *testing.M) {
	code := shared.Main(m)
	if err := goleak.Find(); err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		code = max(code, 1)
	}
	os.Exit(code)
}

func TestStopLeavesNothing(t *testing.T) {
	RequireReal(t)
	c, err := New(t.Context(), Options{})
	must(t, err)
	c.CreateTopic(t, "topic", Topic{})
	p := c.nodes[0].running()
	must(t, c.Close())
	select {
	case <-p.Exited:
	default:
		t.Error("the broker runs after close")
	}
	if connection, err := net.Dial("tcp", c.Brokers()[0]); err == nil {
		connection.Close()
		t.Error("the broker's port is open after close")
	}
	if _, err := os.Stat(c.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("directory after close: %v, want it gone", err)
	}
}

// must ends the test where there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
