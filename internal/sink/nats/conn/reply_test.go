package conn

import (
	"errors"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/test/natsserver"
)

// TestRequestsSayWhatEndedTheConnection, such as that the user may not subscribe: it is no outage to wait for.
func TestRequestsSayWhatEndedTheConnection(t *testing.T) {
	s := natsserver.Start(t)
	c, err := Dial(within(t), &Options{URL: s.URL(), Servers: s.URL(), Name: "test", Replies: 1, Timing: Timing{
		Reply: limit, Outage: limit, Dial: limit, Flush: limit, Ping: time.Minute,
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(within(t))
	c.fail(sink.Permanent("not permitted"))
	for c.NC.IsConnected() {
		<-c.Changed
	}
	var forbidden *sink.PermanentError
	if err := c.Request(within(t), "INFO", nil, &struct{}{}); !errors.As(err, &forbidden) {
		t.Fatalf("got %v, want a PermanentError", err)
	}
}
