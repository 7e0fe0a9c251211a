package harness

import (
	"os"
	"syscall"
	"time"
)

// Measured is what some events cost the process that took them.
type Measured struct {
	Events    int
	CPU, Wall time.Duration // between the first and the last of them
	PeakRSS   int64         // bytes, since the process began
}

// PerCPUSecond is the events that one second of CPU time is worth.
func (m Measured) PerCPUSecond() float64 { return float64(m.Events) / m.CPU.Seconds() }

// PerSecond is the events of one second on the wall.
func (m Measured) PerSecond() float64 { return float64(m.Events) / m.Wall.Seconds() }

// PeakMiB is the peak RSS in MiB.
func (m Measured) PeakMiB() float64 { return float64(m.PeakRSS) / (1 << 20) }

// Meter takes the time of a number of events. One goroutine adds them; any may wait for Done.
type Meter struct {
	want, seen  int
	first, last usage
	done        chan struct{}
}

// NewMeter returns a Meter for so many events, at least two.
func NewMeter(want int) *Meter { return &Meter{want: want, done: make(chan struct{})} }

// Add counts n more events. The clock runs from the first call, whose events are not part of the measure, to the call
// that completes the number.
func (m *Meter) Add(n int) {
	switch before := m.seen; {
	case n == 0 || before >= m.want:
		return
	case before == 0:
		m.first = usageNow(n)
	}
	if m.seen += n; m.seen >= m.want {
		m.last = usageNow(m.seen)
		close(m.done)
	}
}

// Done is closed when all events were added.
func (m *Meter) Done() <-chan struct{} { return m.done }

// Measured returns the measure; it is called after Done.
func (m *Meter) Measured() (Measured, error) {
	peak, err := memory(os.Getpid(), "VmHWM:")
	return Measured{
		Events:  m.last.events - m.first.events,
		CPU:     m.last.cpu - m.first.cpu,
		Wall:    m.last.at.Sub(m.first.at),
		PeakRSS: peak,
	}, err
}

// usage is what this process has used up to a number of events.
type usage struct {
	events int
	at     time.Time
	cpu    time.Duration
}

func usageNow(events int) usage {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err) // it can only fail for a bad argument
	}
	return usage{events: events, at: time.Now(), cpu: time.Duration(r.Utime.Nano() + r.Stime.Nano())}
}
