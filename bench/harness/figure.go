package harness

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"
)

// Figure is one result of a benchmark.
type Figure struct {
	Name  string // "kafka.snappy_rss_mib"
	Value float64
	Unit  string
}

// Print writes the figures one a line, for people and for machines: "bench NAME VALUE UNIT".
func Print(w io.Writer, figures []Figure) error {
	for _, f := range figures {
		decimals := 0 // small values have those that large ones do not need
		if f.Value < 10 {
			decimals = 3
		} else if f.Value < 1000 {
			decimals = 1
		}
		if _, err := fmt.Fprintf(w, "bench %s %.*f %s\n", f.Name, decimals, f.Value, f.Unit); err != nil {
			return fmt.Errorf("print the figures: %w", err)
		}
	}
	return nil
}

// Percentile is the smallest value that so many percent of the values do not exceed, and 0 of none.
func Percentile(values []float64, percent float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, int(math.Ceil(percent/100*float64(len(sorted))))-1)]
}

// Median is the middle one of the values, the lower of two, and 0 of none.
func Median(values []float64) float64 { return Percentile(values, 50) }

// Measured is what some events cost the process that took them.
type Measured struct {
	Events int
	CPU    time.Duration
	Peak   int64 // of its memory, in bytes
}

// PerCPUSecond is the events that one second of CPU time is worth.
func (m Measured) PerCPUSecond() float64 { return float64(m.Events) / m.CPU.Seconds() }

// PeakMiB is the peak of its memory in MiB.
func (m Measured) PeakMiB() float64 { return float64(m.Peak) / (1 << 20) }

// Results are those of several contestants, by name, one a round each.
type Results map[string][]Measured

// Note adds a round's, and shows it.
func (r Results) Note(name string, m Measured) {
	r[name] = append(r[name], m)
	fmt.Fprintf(os.Stderr, "%-13s %7d events, %5.2f s CPU, %7.0f events/CPU-s, %5.1f MiB\n",
		name, m.Events, m.CPU.Seconds(), m.PerCPUSecond(), m.PeakMiB())
}

// Median is that of the contestant's values.
func (r Results) Median(name string, value func(Measured) float64) float64 {
	var values []float64
	for _, m := range r[name] {
		values = append(values, value(m))
	}
	return Median(values)
}

// Figures are the contestant's rate and memory, with the prefix in their names.
func (r Results) Figures(prefix, name string) []Figure {
	return []Figure{
		{Name: prefix + "events_per_cpu_second", Value: r.Median(name, Measured.PerCPUSecond), Unit: "events/s"},
		{Name: prefix + "rss_mib", Value: r.Median(name, Measured.PeakMiB), Unit: "MiB"},
	}
}

// Ratio is the median of the rounds' ratios of one contestant to another: what slows a round down slows both sides of
// its ratio.
func (r Results) Ratio(of, to string) float64 {
	var values []float64
	for i, m := range r[of] {
		values = append(values, m.PerCPUSecond()/r[to][i].PerCPUSecond())
	}
	return Median(values)
}
