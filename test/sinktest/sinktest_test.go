package sinktest

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// lieEnv makes the test binary a run of the suite over a log that lies.
const lieEnv = "KUBECDC_SINKTEST_LIE"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSuitePassesAnHonestSink(t *testing.T) {
	Run(t, Harness{New: func(t *testing.T) *Env { return (&memory{lie: os.Getenv(lieEnv)}).env(t) }})
}

func TestSuitePassesAPartitionedSink(t *testing.T) {
	Run(t, Harness{New: func(t *testing.T) *Env {
		env := (&memory{}).env(t)
		env.Partitioned = true
		env.Destination = nil
		return env
	}})
}

// Each lie is told in a process of its own, since the suite answers it with a failed test.
func TestSuiteCatchesEveryLie(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a process for each lie")
	}
	for lie, caught := range map[string]string{
		"acknowledges early":      "I1_durable_before_Write_returns",
		"keeps the batch":         "I1_durable_before_Write_returns",
		"drops headers":           "I1_durable_before_Write_returns",
		"reorders":                "I3_order_over_many_batches",
		"drops tombstones":        "I3_messages_of_every_shape",
		"returns what is foreign": "empty_mark_leaves_alone_what_is_there",
		"forgets what follows":    "I3_crash_in_the_first_batch",
		"repeats after a cut":     "I3_cut_connections",
		"tears pairs":             "I3_pairs_are_whole",
		"names another message":   "I4_rejection_names_the_message",
		"overlooks the loss":      "I4_log_made_again",
		"closes once":             "I7_Close",
		"leaks":                   "I7_no_goroutine_is_left",
		"hangs":                   "I1_stalled_transport",
		"does not fence":          "I10_one_of_two_writers",
	} {
		t.Run(lie, func(t *testing.T) {
			t.Parallel()
			name := "TestSuitePassesAnHonestSink/" + caught
			suite := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+strings.ReplaceAll(name, "/", "$/^")+"$")
			suite.Env = append(os.Environ(), lieEnv+"="+lie)
			out, err := suite.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "--- FAIL: "+name) {
				t.Fatalf("not caught by %s: %v\n%s", caught, err, out)
			}
		})
	}
}
