package frame

import (
	"testing"
)

func FuzzFrame(f *testing.F) {
	for _, c := range frameCases() {
		f.Add([]byte(c.line), uint8(0))
	}
	f.Add([]byte(pod(1)), uint8(1))
	f.Add([]byte(watchLine(Added, pod(1))), uint8(0))
	f.Fuzz(func(t *testing.T, line []byte, n uint8) {
		for i, c := range line {
			if c == '\n' {
				line = line[:i]
				break
			}
		}
		if err := checkFrame(line, optionsFor(n)); err != nil {
			t.Fatalf("%v\n%q", err, line)
		}
	})
}

func FuzzList(f *testing.F) {
	for _, c := range listCases() {
		f.Add([]byte(c.page), uint8(4))
	}
	f.Fuzz(func(t *testing.T, page []byte, n uint8) {
		if err := checkList(page, optionsFor(n), readerFor(n)); err != nil {
			t.Fatalf("%v\n%q", err, page)
		}
	})
}

// FuzzShapes lets the fuzzer choose among the shapes of JSON, where FuzzFrame and FuzzList mostly break it.
func FuzzShapes(f *testing.F) {
	f.Add([]byte{}, uint8(0))
	f.Add([]byte("0123456789abcdefghijklmnopqrstuvwxyz"), uint8(9))
	f.Fuzz(func(t *testing.T, choices []byte, n uint8) {
		if line := shapedFrame(choices); true {
			if err := checkFrame(line, optionsFor(n)); err != nil {
				t.Fatalf("%v\n%q", err, line)
			}
		}
		if page := shapedList(choices); true {
			if err := checkList(page, optionsFor(n), readerFor(n)); err != nil {
				t.Fatalf("%v\n%q", err, page)
			}
		}
	})
}

// FuzzBalance holds the words against single steps.
func FuzzBalance(f *testing.F) {
	f.Add([]byte(`{"a":"\\\"}","b":[{}]}, and more`), uint8(3))
	f.Fuzz(func(t *testing.T, text []byte, piece uint8) { checkBalance(t, text, int(piece)) })
}
