package e2e

import (
	"flag"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/kubecdc/kubecdc/test/program"
	"github.com/kubecdc/kubecdc/test/testcluster"
)

// built is the program under test.
var built program.Build

func TestMain(m *testing.M) {
	if dir := os.Getenv(brokerDirVariable); dir != "" {
		os.Exit(serveBroker(dir, os.Getenv(brokerPortVariable)))
	}
	testcluster.HearHangups()
	klog.SetLogger(logr.Discard()) // client-go tells of each connection that a killed server leaves
	beParallel()
	code := m.Run()
	built.Remove()
	os.Exit(code)
}

// beParallel lets one more test run than there are cores, unless the command line says how many: each waits for Leases
// and servers half of the time.
func beParallel() {
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if said {
		return
	}
	if err := flag.Set("test.parallel", strconv.Itoa(runtime.GOMAXPROCS(0)+1)); err != nil {
		panic(err) // the testing package has no such flag any more
	}
}

// seed is what the test's random choices come from.
func seed(t *testing.T) uint64 {
	t.Helper()
	return uint64(number(t, "E2E_SEED", 1))
}

// kills is how often a test kills the exporter: the number of the environment, or else the test's own.
func kills(t *testing.T, usual int) int {
	t.Helper()
	return number(t, "E2E_KILLS", usual)
}

// betweenCuts is how long connections live on average where a network is bad. On a machine that is busy with other
// tests a life of less than it takes to connect would test nothing.
func betweenCuts(t *testing.T) time.Duration {
	t.Helper()
	return time.Duration(number(t, "E2E_CUTS", 150)) * time.Millisecond
}

// restarts is how often a test restarts the API server.
func restarts(t *testing.T, usual int) int {
	t.Helper()
	return number(t, "E2E_RESTARTS", usual)
}

func number(t *testing.T, variable string, usual int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("%s=%q is no number", variable, text)
	}
	return n
}
