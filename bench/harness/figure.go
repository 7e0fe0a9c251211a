package harness

import (
	"fmt"
	"io"
	"slices"
)

// Figure is one result of a benchmark.
type Figure struct {
	Name  string // "source.ratio_to_copy"
	Value float64
	Unit  string
}

// Print writes the figures one a line, for people and for machines: "bench NAME VALUE UNIT".
func Print(w io.Writer, figures []Figure) error {
	for _, f := range figures {
		if _, err := fmt.Fprintf(w, "bench %s %s %s\n", f.Name, decimal(f.Value), f.Unit); err != nil {
			return fmt.Errorf("print the figures: %w", err)
		}
	}
	return nil
}

// decimal gives small values the decimals that large ones do not need.
func decimal(v float64) string {
	switch {
	case v < 10:
		return fmt.Sprintf("%.3f", v)
	case v < 1000:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// AtLeast is an error where the figure is below the bound.
func AtLeast(name string, value, bound float64) error {
	if value < bound {
		return fmt.Errorf("%s is %.3f, below %.2f", name, value, bound)
	}
	return nil
}

// Median is the middle one of the values, the lower of two, and 0 of none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(len(sorted)-1)/2]
}
