package harness

import (
	"fmt"
	"os"
)

// Results are those of several contestants, by name, one a round each. The zero value has none.
type Results struct{ rounds map[string][]Measured }

// Note adds a round's, and shows it.
func (r *Results) Note(name string, m Measured) {
	if r.rounds == nil {
		r.rounds = map[string][]Measured{}
	}
	r.rounds[name] = append(r.rounds[name], m)
	fmt.Fprintf(os.Stderr, "%-10s %7d events, %5.2f s, %5.2f s CPU, %7.0f events/CPU-s, %5.1f MiB\n",
		name, m.Events, m.Wall.Seconds(), m.CPU.Seconds(), m.PerCPUSecond(), m.PeakMiB())
}

// Median is that of the contestant's values.
func (r *Results) Median(name string, value func(Measured) float64) float64 {
	var values []float64
	for _, m := range r.rounds[name] {
		values = append(values, value(m))
	}
	return Median(values)
}

// Ratio is the median of the rounds' ratios of one contestant to another: what slows a round down slows both sides of
// its ratio.
func (r *Results) Ratio(of, to string) float64 {
	var values []float64
	for i, m := range r.rounds[of] {
		values = append(values, m.PerCPUSecond()/r.rounds[to][i].PerCPUSecond())
	}
	return Median(values)
}
