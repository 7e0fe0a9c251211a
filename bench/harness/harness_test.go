package harness

import (
	"strings"
	"testing"
)

func TestFiguresAreOneALine(t *testing.T) {
	var out strings.Builder
	figures := []Figure{{"source.ratio", 0.6543, "ratio"}, {"source.rss_mib", 31.25, "MiB"}, {"source.events", 41234.6, "events/s"}}
	if err := Print(&out, figures); err != nil {
		t.Fatal(err)
	}
	want := "bench source.ratio 0.654 ratio\nbench source.rss_mib 31.2 MiB\nbench source.events 41235 events/s\n"
	if out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}

func TestMedian(t *testing.T) {
	for want, values := range map[float64][]float64{0: nil, 3: {9, 1, 3}, 2: {4, 2, 1, 8}} {
		if got := Median(values); got != want {
			t.Errorf("the median of %v is %v, want %v", values, got, want)
		}
	}
}

func TestMeterMeasuresBetweenFirstAndLast(t *testing.T) {
	m := NewMeter(10)
	m.Add(0)
	m.Add(2)
	m.Add(7)
	select {
	case <-m.Done():
		t.Fatal("done after 9 of 10")
	default:
	}
	m.Add(4)
	m.Add(1)
	<-m.Done()
	measured, err := m.Measured()
	if err != nil || measured.Events != 11 || measured.PeakRSS == 0 || measured.Wall <= 0 {
		t.Errorf("measured %+v, %v", measured, err)
	}
}
