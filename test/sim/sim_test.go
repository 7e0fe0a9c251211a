package sim

import (
	"cmp"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

var (
	seedFlag    = flag.Uint64("seed", 0, "play this seed alone, and show what happened")
	seedsFlag   = flag.Uint64("seeds", 1000, "how many seeds to play")
	firstFlag   = flag.Uint64("first", 1, "the first seed to play")
	wildFlag    = flag.Int("wild", 10, "in how many percent of the worlds disasters happen: another cluster, a restored etcd, a log that loses records")
	changesFlag = flag.String("changes", changes, "which changes of the configuration there are between lives: none, those of streams, or those of namespaces as well")
	backFlag    = flag.Int("back", 40, "in how many percent of the worlds the state is put back to an earlier one")
	membersFlag = flag.Int("members", 20, "in how many percent of the worlds the exporter is a task of several members, of which one leads")
	withoutFlag = flag.String("without", "", "what is taken out of a task, which must be noticed: fence, proof or order")
	ignoreFlag  = flag.Int("ignore", 20, "in how many percent of the worlds half of all updates do not matter")
	gatesFlag   = flag.Int("gates", 20, "in how many percent of the worlds a sink has no schema of a resource for a while")
	timesFlag   = flag.Int("times", 1, "how often -seed is played: what the goroutines do is not all the seed's")
)

func TestMain(m *testing.M) {
	// client-go paces its error log by a clock that all bubbles would share.
	utilruntime.ErrorHandlers = nil
	debug.SetGCPercent(800) // a world is garbage after a few milliseconds
	goleak.VerifyTestMain(m)
}

// play runs the script in a bubble of its own and returns its report, "" where nothing is violated.
func play(t *testing.T, s script, always bool) (report string) {
	synctest.Test(t, func(t *testing.T) {
		s.Without = cmp.Or(s.Without, *withoutFlag)
		w := newWorld(s)
		if violations := w.run(); len(violations) > 0 || always {
			report = w.report()
			if len(violations) > 0 {
				report = "violated: " + report
			}
		}
	})
	return report
}

// TestSimulation plays seeds, and judges I1 to I9 and I11 in each.
func TestSimulation(t *testing.T) {
	if *seedFlag != 0 {
		for range *timesFlag {
			report := play(t, generate(*seedFlag), *timesFlag == 1)
			t.Log(report)
			if len(report) > 8 && report[:8] == "violated" {
				t.FailNow()
			}
		}
		return
	}
	var next atomic.Uint64
	next.Store(*firstFlag)
	for shard := range runtime.GOMAXPROCS(0) {
		t.Run(strconv.Itoa(shard), func(t *testing.T) {
			t.Parallel()
			for !t.Failed() {
				seed := next.Add(1) - 1
				if seed >= *firstFlag+*seedsFlag {
					return
				}
				if report := play(t, generate(seed), false); report != "" {
					next.Store(*firstFlag + *seedsFlag)
					t.Errorf("seed %d (the %dth): %s\nplay it again: go test ./test/sim -run TestSimulation -seed %d", seed, seed-*firstFlag+1, report, seed)
				}
			}
		})
	}
}

// TestRegressions plays the scripts of bugs that were found.
func TestRegressions(t *testing.T) {
	files, err := filepath.Glob("testdata/*.script")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s, err := parse(string(text))
			if err != nil {
				t.Fatal(err)
			}
			if report := play(t, s, false); report != "" {
				t.Error(report)
			}
		})
	}
}

// TestScriptIsText holds that a script survives being written and read.
func TestScriptIsText(t *testing.T) {
	for seed := range uint64(50) {
		s := generate(seed)
		again, err := parse(s.String())
		if err != nil || again.String() != s.String() {
			t.Fatalf("%v\n%s\nis read as\n%s", err, s, again)
		}
	}
}
