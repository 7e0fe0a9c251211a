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

// secured is one broker with ACLs, for tests of what is permitted.
var secured = kafkatest.Shared{Options: kafkatest.Options{
	Listeners: []kafkatest.Listener{kafkatest.SASL}, Users: map[string]string{"bob": "builder", "carol": "singer"}, ACLs: true,
}}

// TestMain looks for goroutines that outlive the sinks, after the broker's own client has ended.
func TestMain(m *testing.M) {
	code := broker.Main(m)
	if err := secured.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
