package frame

import (
	"bytes"
	"strings"
	"testing"
)

// TestLentObjectsAreTheSame as those that last, and so do their names, and what is kept of them, after all others.
func TestLentObjectsAreTheSame(t *testing.T) {
	text, _ := stream()
	for i, pad := range []int{0, 1, keepWindow - 100, keepWindow, 3 * keepWindow, 10} {
		text += watchLine(Modified, strings.Replace(pod(i), `"spec":`, `"pad":"`+strings.Repeat("x", pad)+`","spec":`, 1))
		text += watchLine(Modified, `{ "metadata": {"name": "sp\u0061ce", "namespace": "n", "uid": "u", "resourceVersion": "9"} }`)
	}
	r := NewReader(strings.NewReader(text), Options{Lend: true})
	var frames []Frame
	var kept [][]byte
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		f, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if err := compareObject(f.Object, must(oracleFrame([]byte(line), Options{})).Object, Options{}); err != nil {
			t.Errorf("frame %d: %v", i, err)
		}
		frames, kept = append(frames, f), append(kept, r.Keep(f.Object.JSON))
	}
	overwritten := 0
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if !bytes.Equal(frames[i].Object.JSON, kept[i]) {
			overwritten++
		}
		frames[i].Object.JSON = kept[i]
		if err := compareObject(frames[i].Object, must(oracleFrame([]byte(line), Options{})).Object, Options{}); err != nil {
			t.Errorf("behind all others, frame %d: %v", i, err)
		}
	}
	if overwritten == 0 {
		t.Error("no object was lent")
	}
}
