package pipeline

import "testing"

func TestI6OnlyABusyProcessWithLittleAliveCollectsLater(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name    string
		live    uint64
		garbage float64 // bytes a second
		want    int
	}{
		{"idle", 4 * mib, 10 << 10, 100},
		{"idle, and nothing alive", 0, 0, 100},
		{"busy", 4 * mib, 100 * mib, 250},
		{"as fast as it can", 4 * mib, 1000 * mib, 600},
		{"with full queues", 80 * mib, 1000 * mib, 100},
		{"nothing alive yet", 0, 1000 * mib, 600},
	} {
		if got := collectorPercent(c.live, c.garbage); got != c.want {
			t.Errorf("%s: %d%%, want %d%%", c.name, got, c.want)
		}
	}
}
