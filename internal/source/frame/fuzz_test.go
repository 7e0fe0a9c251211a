package frame

import (
	"bytes"
	"errors"
	"testing"
)

// FuzzJSON has frames and pages as they come, and as their bytes choose among the shapes of JSON, which the fuzzer
// would mostly break.
func FuzzJSON(f *testing.F) {
	for _, c := range frameCases() {
		f.Add([]byte(c.line), uint8(0))
	}
	for _, c := range listCases() {
		f.Add([]byte(c.page), uint8(4))
	}
	f.Add([]byte(pod(1)), uint8(1))
	f.Add([]byte("0123456789abcdefghijklmnopqrstuvwxyz"), uint8(9))
	f.Fuzz(func(t *testing.T, text []byte, n uint8) {
		line, _, _ := bytes.Cut(text, []byte("\n"))
		opts := optionsFor(n)
		err := errors.Join(checkFrame(line, opts), checkFrame(shapedFrame(text), opts), checkList(text, opts, readerFor(n)),
			checkList(shapedList(text), opts, readerFor(n)))
		if err != nil {
			t.Fatalf("%v\n%q", err, text)
		}
	})
}
