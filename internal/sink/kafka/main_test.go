package kafka

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	kafkatest "github.com/kubecdc/kubecdc/test/kafka"
)

// broker is one broker for all tests that do it no harm.
var broker kafkatest.Shared

// TestMain looks for goroutines that outlive the sinks, after the broker's own client has ended.
func TestMain(m *testing.M) {
	code := broker.Main(m)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
